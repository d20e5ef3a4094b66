use cuzk_bounded::BoundedReceiver;

use super::*;
use crate::block::PART_BYTES;
use crate::checkpoint::NEVER_STOP;
use ff::Field;

/// The unit in which memory is kept, in scalars.
const PART: usize = PART_BYTES / size_of::<Scalar>();

/// Drops a value on a thread of another name.
fn drop_in_turn(value: Box<dyn Send>) {
    let builder = thread::Builder::new().name("in turn".to_owned());
    builder.spawn(move || drop(value)).unwrap();
}

/// Returns a pool that keeps `kept` scalars at most.
fn pool(dealloc: Dealloc, kept: usize) -> Arc<BufferPool> {
    BufferPool::new(dealloc, (kept * size_of::<Scalar>()) as u64, drop_in_turn)
}

/// Returns the units that it keeps.
fn kept(pool: &BufferPool) -> usize {
    usize::try_from(pool.kept_bytes()).unwrap() / PART_BYTES
}

#[test]
#[cfg_attr(miri, ignore = "reads megabytes")]
fn a_new_buffer_is_zero_and_a_recycled_one_is_what_it_was() {
    let pool = pool(Dealloc::Recycle, 1000 * PART);
    let mut first = pool.take(100 * PART).unwrap();
    assert!(first.iter().all(Field::is_zero_vartime));
    first.fill(Scalar::ONE);
    let place = first.as_ptr();
    drop(first);
    assert_eq!(kept(&pool), 100);
    let again = pool.take(80 * PART).unwrap();
    assert_eq!((again.as_ptr(), again.len()), (place, 80 * PART));
    assert!(again.iter().all(|scalar| *scalar == Scalar::ONE));
    assert_eq!(kept(&pool), 20);
}

#[test]
#[cfg_attr(miri, ignore = "calls blst")]
fn buffers_in_use_are_apart() {
    let pool = pool(Dealloc::Recycle, 1000 * PART);
    drop(pool.take(100 * PART).unwrap());
    let mut buffers = [10, 20, 30, 50].map(|parts| pool.take(parts * PART).unwrap());
    for (value, buffer) in (1..).zip(&mut buffers) {
        buffer.fill(Scalar::from(value));
    }
    for (value, buffer) in (1..).zip(&buffers) {
        assert!(buffer.iter().all(|scalar| *scalar == Scalar::from(value)));
    }
}

#[test]
fn no_more_is_kept_than_allowed() {
    let pool = pool(Dealloc::Recycle, 500 * PART);
    drop([200, 200, 200].map(|parts| pool.take(parts * PART).unwrap()));
    assert_eq!(kept(&pool), 500);
}

#[test]
fn at_rest_what_one_partition_takes_is_kept() {
    let pool = pool(Dealloc::Recycle, 10_000 * PART);
    // It takes two blocks; another one of a smaller circuit follows.
    pool.make_room(
        &[300, 100].map(|parts| parts * PART_BYTES),
        u64::MAX,
        &NEVER_STOP,
    );
    pool.make_room(&[200 * PART_BYTES], u64::MAX, &NEVER_STOP);
    let take = || [300, 100, 300, 100].map(|parts| pool.take(parts * PART).unwrap());
    drop(take());
    let used = take();
    // Something is in use, or was since.
    for _ in 0..3 {
        assert!(!pool.give_up_at_rest());
        assert_eq!(pool.usage().in_use_bytes, 800 * PART_BYTES as u64);
    }
    drop(used);
    assert!(!pool.give_up_at_rest());
    assert_eq!(kept(&pool), 800);
    assert!(pool.give_up_at_rest());
    assert_eq!(kept(&pool), 400);
    assert!(!pool.give_up_at_rest());
    // It is less than was in use before, and what is small is still there.
    let mappings = pool.usage().mappings;
    drop(take());
    assert_eq!(pool.usage().mappings, mappings + 2);
}

#[test]
fn what_the_next_will_take_stays_and_others_make_room() {
    let pool = pool(Dealloc::Recycle, 10_000 * PART);
    let keep = || drop([100, 300, 400, 1000].map(|parts| pool.take(parts * PART).unwrap()));
    keep();
    // There is room for all of them.
    pool.make_room(&[], 1800 * PART_BYTES as u64, &NEVER_STOP);
    assert_eq!(kept(&pool), 1800);
    // For what suits and no more, though it was not kept last.
    pool.make_room(&[250, 100].map(|parts| parts * PART_BYTES), 0, &NEVER_STOP);
    assert_eq!(kept(&pool), 350);
    drop(pool.take(250 * PART).unwrap());
    assert_eq!(kept(&pool), 350);
    // A demand that no block suits is no reason to keep more than there is room for.
    keep();
    pool.make_room(&[2000 * PART_BYTES], 1400 * PART_BYTES as u64, &NEVER_STOP);
    assert_eq!(kept(&pool), 1400);
    pool.make_room(&[], 0, &NEVER_STOP);
    assert_eq!(kept(&pool), 0);
}

#[test]
fn kernels_and_partitions_share_what_is_kept() {
    let pool = pool(Dealloc::Recycle, 1000 * PART);
    drop(pool.take(100 * PART).unwrap());
    let block = Memory::take(&*pool, 60 * PART_BYTES).unwrap();
    assert_eq!((block.bytes(), kept(&pool)), (60 * PART_BYTES, 40));
    let scalars = pool.take(40 * PART).unwrap();
    pool.give_back(block);
    drop(scalars);
    assert_eq!(kept(&pool), 100);
}

#[test]
fn nothing_is_kept_unless_recycling() {
    for dealloc in [Dealloc::Unbounded, Dealloc::Serial] {
        let pool = pool(dealloc, 1000 * PART);
        drop(pool.take(100).unwrap());
        assert_eq!(pool.kept_bytes(), 0, "{dealloc:?}");
    }
}

/// Says on which thread it is dropped.
struct Tells(std::sync::mpsc::Sender<Option<String>>);

impl Drop for Tells {
    fn drop(&mut self) {
        let thread = thread::current();
        drop(self.0.send(thread.name().map(str::to_owned)));
    }
}

#[test]
fn values_are_dropped_as_configured() {
    let dropped_on = |dealloc| {
        let (tells, told) = std::sync::mpsc::channel();
        pool(dealloc, 0).drop_later(Tells(tells), 0);
        told.recv_bounded().unwrap()
    };
    assert_eq!(dropped_on(Dealloc::Unbounded), None);
    let serial = dropped_on(Dealloc::Serial);
    assert_eq!(serial.as_deref(), Some("in turn"));
    let here = thread::current().name().map(str::to_owned);
    assert!(here.is_some() && here != serial);
    assert_eq!(dropped_on(Dealloc::Recycle), here);
}

/// Is dropped once somebody lets it.
struct Held(std::sync::mpsc::Receiver<()>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.recv_bounded().ok();
    }
}

#[test]
fn who_maps_waits_for_what_is_leaving() {
    for dealloc in [Dealloc::Unbounded, Dealloc::Serial] {
        let pool = pool(dealloc, 0);
        let (may, held) = std::sync::mpsc::channel();
        pool.drop_later(Held(held), 1000);
        // There is room for both, and for a block behind it.
        pool.make_room(&[], 1000, &NEVER_STOP);
        drop(pool.take(PART).unwrap());
        pool.make_room(&[], 1000 + PART_BYTES as u64, &NEVER_STOP);
        let (tell, told) = std::sync::mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                pool.make_room(&[], 999, &NEVER_STOP);
                tell.send(()).unwrap();
            });
            let early = told.recv_timeout(std::time::Duration::from_millis(50));
            assert!(early.is_err(), "{dealloc:?}");
            may.send(()).unwrap();
            assert!(told.recv_bounded().is_ok(), "{dealloc:?}");
        });
        pool.make_room(&[], 0, &NEVER_STOP);
    }
}

#[test]
#[cfg_attr(miri, ignore = "asks the system for more than Miri has")]
fn more_than_there_can_be_is_an_error() {
    for dealloc in Dealloc::ALL {
        let pool = pool(dealloc, 0);
        assert!(pool.take(usize::MAX / 2).is_err());
        assert!(pool.take(usize::MAX / 64).is_err());
        assert!(pool.take(0).unwrap().is_empty());
    }
}

#[test]
fn who_does_not_recycle_uses_the_heap() {
    let pool = pool(Dealloc::Serial, 1);
    assert_eq!(format!("{:?}", pool.array_memory()), "ArrayMemory(heap)");
}
