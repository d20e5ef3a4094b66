// Frees large C++ buffers on one background thread. The reason: unmapping hundreds
// of gigabytes from several threads at once stalls all cores with TLB shootdowns.
// Not for small buffers. Rust's buffers are freed by src/dealloc.rs.
//
// Invariants: a thread that frees holds dealloc_mtx, so at most one value is being
// freed at a time. At most kQueueMax values wait; beyond that the caller frees its
// own, in its turn, so memory cannot pile up behind a slow free. The thread gives
// way to all other threads. None of this holds after
// cuzk_dealloc_set_unbounded(true): each value then has a thread of its own, which
// stalls all cores. That is there to be measured, and belongs to the process.
#pragma once

#include <memory>
#include <new>
#include <tuple>
#include <type_traits>
#include <utility>

namespace cuzk {

// An object whose destructor frees memory. The destructor may not call back into
// this file.
class Garbage {
public:
    Garbage() = default;
    virtual ~Garbage() = default;
    Garbage(const Garbage &) = delete;
    Garbage &operator=(const Garbage &) = delete;
};

// Frees `garbage` soon. Never throws: without memory for the queue or a thread to
// free it, it is freed here, under the same mutex.
void dealloc_async(std::unique_ptr<Garbage> garbage) noexcept;

// Frees the given owners (vectors, unique pointers) soon. Without memory for the
// few bytes that hold them, they stay with the caller, who frees them.
template <class... Owner>
void dealloc_async_owners(Owner &&...owner) noexcept {
    static_assert((!std::is_lvalue_reference_v<Owner> && ...), "move what is to be freed");
    class Holder final : public Garbage {
    public:
        explicit Holder(Owner &&...held) : held_(std::move(held)...) {}

    private:
        std::tuple<Owner...> held_;
    };
    if (auto *holder = new (std::nothrow) Holder(std::move(owner)...)) {
        dealloc_async(std::unique_ptr<Garbage>(holder));
    }
}

} // namespace cuzk
