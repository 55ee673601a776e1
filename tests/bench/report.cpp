#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tests/bench/bench.h"

namespace croton::bench {
namespace {

std::string readable(double seconds) {
  if (seconds < 1e-6) return fmt::format("{:.1f} ns", seconds * 1e9);
  if (seconds < 1e-3) return fmt::format("{:.2f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.2f} s", seconds);
}

std::string verdict(const Row& row) {
  if (!row.has_floor()) return "";
  const std::string floor =
      row.floor_ratio > 0 ? fmt::format("{:.2f}", row.floor_ratio) : readable(row.floor_seconds);
  return fmt::format("{} {:>9}  {}", row.floor_ratio > 0 ? ">=" : "<=", floor,
                     row.passed() ? "PASS" : "below");
}

nlohmann::ordered_json json_of(const Times& times) {
  return {{"min", times.min}, {"median", times.median}, {"repeats", times.repeats}};
}

}  // namespace

double Row::ratio() const {
  if (!limit) return 0;
  return amount / times.min / (limit->amount / limit->times.min);
}

double Row::median_ratio() const {
  if (!limit) return 0;
  return amount / times.median / (limit->amount / limit->times.median);
}

/// What else runs on the machine only ever adds time, so the fastest runs decide.
bool Row::passed() const {
  if (floor_ratio > 0) return ratio() >= floor_ratio;
  return floor_seconds <= 0 || times.min <= floor_seconds;
}

void Report::section(const std::string& title) {
  section_ = title;
  fmt::print("\n== {}\n{:<38} {:>10} {:>10} {:>15}  {:<26} {:>6} {:>6}  {}\n", title, "", "min",
             "median", "rate", "against", "ratio", "median", "floor");
}

void Report::add(Row row) {
  const std::string rate =
      row.unit.empty() ? "" : fmt::format("{:.1f} {}", row.rate() * 1e-9, row.unit);
  std::string against, ratio, median;
  if (row.limit) {
    against = fmt::format("{} {}", row.limit->name, readable(row.limit->times.min));
    ratio = fmt::format("{:.3f}", row.ratio());
    median = fmt::format("{:.3f}", row.median_ratio());
  }
  fmt::print("{:<38} {:>10} {:>10} {:>15}  {:<26} {:>6} {:>6}  {}\n", row.name,
             readable(row.times.min), readable(row.times.median), rate, against, ratio, median,
             verdict(row));
  if (!row.note.empty()) fmt::print("    {}\n", row.note);
  std::fflush(stdout);
  rows_.push_back({section_, std::move(row)});
}

void Report::note(const std::string& text) {
  fmt::print("{}\n", text);
  std::fflush(stdout);
  notes_.push_back(text);
}

void Report::summarise() const {
  int with_floor = 0, passed = 0;
  for (const Kept& kept : rows_) {
    if (!kept.row.has_floor()) continue;
    ++with_floor;
    passed += kept.row.passed() ? 1 : 0;
  }
  fmt::print("\n{} of {} rows with a floor reach it\n", passed, with_floor);
}

void Report::write_json(const std::string& path) const {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const auto& [section, row] : rows_) {
    nlohmann::ordered_json entry = {{"section", section},
                                    {"name", row.name},
                                    {"seconds", json_of(row.times)},
                                    {"amount", row.amount},
                                    {"unit", row.unit}};
    if (row.limit) {
      entry["limit"] = {{"name", row.limit->name},
                        {"seconds", json_of(row.limit->times)},
                        {"amount", row.limit->amount}};
      entry["ratio"] = {{"min", row.ratio()}, {"median", row.median_ratio()}};
    }
    if (row.floor_ratio > 0) entry["floor_ratio"] = row.floor_ratio;
    if (row.floor_seconds > 0) entry["floor_seconds"] = row.floor_seconds;
    if (row.has_floor()) entry["passed"] = row.passed();
    if (!row.note.empty()) entry["note"] = row.note;
    list.push_back(std::move(entry));
  }
  std::ofstream file(path);
  file << nlohmann::ordered_json{{"rows", list}, {"notes", notes_}}.dump(2) << '\n';
  if (!file) throw std::runtime_error("cannot write " + path);
}

}  // namespace croton::bench
