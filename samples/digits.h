// The images of digits that samples learn to read: 8 by 8 pixels from 0 to 1, and what they show.
#pragma once

#include <croton/croton.h>
#include <zlib.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

struct Digits {
  static constexpr std::size_t kPixels = 64;
  std::size_t rows = 0;
  std::size_t trained = 0;  ///< the first of them; those of every fifth line come behind
  croton::Array images;     ///< (rows, 64)
  croton::Array labels;     ///< int64, 0 to 9

  /// From a line of 64 pixels from 0 to 16 and the digit for each image.
  explicit Digits(const std::string& path) {
    std::vector<float> pixels;
    std::vector<std::int64_t> digits;
    read(path, false, pixels, digits);
    trained = digits.size();
    read(path, true, pixels, digits);
    rows = digits.size();
    images = croton::Array::from<float>(pixels, {rows, kPixels});
    labels = croton::Array::from<std::int64_t>(digits);
  }

 private:
  static void read(const std::string& path, bool fifths, std::vector<float>& pixels,
                   std::vector<std::int64_t>& digits) {
    std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
    if (!file) throw std::runtime_error("cannot open " + path + "; pass its folder as an argument");
    std::array<char, 1024> line;
    for (int n = 1; gzgets(file.get(), line.data(), line.size()) != nullptr; ++n) {
      if ((n % 5 == 0) != fifths) continue;
      char* at = line.data();
      for (std::size_t i = 0; i < kPixels; ++i, ++at) {
        pixels.push_back(static_cast<float>(std::strtol(at, &at, 10)) / 16.0f);
      }
      digits.push_back(std::strtol(at, nullptr, 10));
    }
  }
};
