// The circuits whose blocks are in a device's memory, and the places of the blocks.
// Their contents are not known here.
//
// Invariants: no two blocks overlap. Blocks are evicted, least recently used first,
// for two reasons only: to make room for a block, or for the frame of its circuit,
// which takes the memory from its start. Blocks are placed as far from the start as
// possible, out of the frames' way.
#pragma once

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "status.hpp"

namespace cuzk {

class Residency {
public:
    // The memory, in bytes.
    void set_bytes(std::size_t bytes) { bytes_ = bytes; }

    // Returns the place of the circuit's block, if it is there. Afterwards no other
    // block is in its frame.
    std::optional<std::size_t> use(const void *circuit, std::size_t frame_bytes) {
        const std::lock_guard<std::mutex> lock(mtx_);
        clear_frame(circuit, frame_bytes);
        const auto at = find(circuit);
        if (at == blocks_.end()) {
            return std::nullopt;
        }
        std::rotate(at, at + 1, blocks_.end());
        return blocks_.back().offset;
    }

    // Makes room for a circuit's block that is not there, beyond its frame. Both
    // fit the memory.
    std::size_t place(const void *circuit, std::size_t frame_bytes, std::size_t block_bytes) {
        const std::lock_guard<std::mutex> lock(mtx_);
        clear_frame(circuit, frame_bytes);
        for (;;) {
            if (const auto offset = highest_gap(frame_bytes, block_bytes)) {
                blocks_.push_back({circuit, *offset, block_bytes});
                return *offset;
            }
            if (blocks_.empty()) {
                throw Error(CUZK_DEVICE_ERROR, "a circuit's block of " +
                                                   std::to_string(block_bytes) +
                                                   " bytes is larger than planned");
            }
            blocks_.erase(blocks_.begin());
        }
    }

    void remove(const void *circuit) noexcept {
        const std::lock_guard<std::mutex> lock(mtx_);
        const auto at = find(circuit);
        if (at != blocks_.end()) {
            blocks_.erase(at);
        }
    }

private:
    struct Block {
        const void *circuit;
        std::size_t offset;
        std::size_t bytes;
    };

    std::vector<Block>::iterator find(const void *circuit) {
        return std::find_if(blocks_.begin(), blocks_.end(),
                            [&](const Block &block) { return block.circuit == circuit; });
    }

    void clear_frame(const void *circuit, std::size_t frame_bytes) {
        const auto in_frame = [&](const Block &block) {
            return block.circuit != circuit && block.offset < frame_bytes;
        };
        blocks_.erase(std::remove_if(blocks_.begin(), blocks_.end(), in_frame), blocks_.end());
    }

    // The last place for a block of `bytes` at or after `start`.
    std::optional<std::size_t> highest_gap(std::size_t start, std::size_t bytes) const {
        std::vector<Block> by_place = blocks_;
        std::sort(by_place.begin(), by_place.end(),
                  [](const Block &a, const Block &b) { return a.offset > b.offset; });
        std::size_t end = bytes_;
        for (const Block &block : by_place) {
            if (end - (block.offset + block.bytes) >= bytes) {
                break;
            }
            end = block.offset;
        }
        if (end < start || end - start < bytes) {
            return std::nullopt;
        }
        return end - bytes;
    }

    std::mutex mtx_;
    std::size_t bytes_ = 0;
    std::vector<Block> blocks_; // the most recently used last
};

} // namespace cuzk
