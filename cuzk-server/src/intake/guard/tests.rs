use cuzk_bounded::Bound;

use super::*;

const MIB: u64 = 1 << 20;

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_room_and_gets_it() {
    let _bound = Bound::default();
    let intake = Intake::new(400 * MIB, Way::default());
    let first = intake.reserve(Class::Sealing, 200 * MIB).await.unwrap();
    let other = intake.clone();
    let second = tokio::spawn(async move { other.reserve(Class::Sealing, 200 * MIB).await });
    tokio::task::yield_now().await;
    assert_eq!((intake.held_bytes(), intake.waiting()), (200 * MIB, 1));
    let clone = first.clone();
    drop(first);
    assert_eq!(intake.waiting(), 1, "the clone holds the bytes");
    drop(clone);
    let second = second.await.unwrap().unwrap();
    assert_eq!((intake.held_bytes(), intake.waiting()), (200 * MIB, 0));
    drop(second);
    assert_eq!(intake.held_bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_goes_away_leaves_its_place_to_the_next() {
    let _bound = Bound::default();
    let intake = Intake::new(400 * MIB, Way::default());
    let first = intake.reserve(Class::Sealing, 200 * MIB).await.unwrap();
    let large = tokio::spawn({
        let intake = intake.clone();
        async move { intake.reserve(Class::Sealing, 250 * MIB).await }
    });
    tokio::task::yield_now().await;
    let small = tokio::spawn({
        let intake = intake.clone();
        async move { intake.reserve(Class::Sealing, 10 * MIB).await }
    });
    tokio::task::yield_now().await;
    assert_eq!(intake.waiting(), 2);
    large.abort();
    assert!(large.await.is_err());
    let small = small.await.unwrap().unwrap();
    assert_eq!((intake.held_bytes(), intake.waiting()), (210 * MIB, 0));
    drop((first, small));
    assert_eq!(intake.held_bytes(), 0);
}
