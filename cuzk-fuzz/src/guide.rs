//! Decides which inputs reached something new.

use crate::coverage::Counters;

/// The buckets that inputs reached, and the counters that tell them.
#[derive(Debug)]
pub(crate) struct Guide<C> {
    counters: C,
    /// The buckets of each edge that were reached, as bits.
    reached: Vec<u8>,
}

/// Buckets that an input reached first: of each edge its number and the bit.
pub(crate) type News = Vec<(usize, u8)>;

impl<C: Counters> Guide<C> {
    pub(crate) fn new(counters: C) -> Self {
        let mut guide = Self {
            counters,
            reached: Vec::new(),
        };
        guide.clear();
        guide
    }

    /// Forgets what was reached since the last input.
    pub(crate) fn clear(&mut self) {
        self.counters.take(&mut |_, _| ());
    }

    /// Makes the answers faster. An input that reaches code far from all that was reached before may
    /// be found only the second time.
    pub(crate) fn hurry(&mut self) {
        self.counters.hurry();
    }

    /// Returns the buckets that the last input reached, and none before.
    pub(crate) fn news(&mut self) -> News {
        let mut news = Vec::new();
        let reached = &mut self.reached;
        self.counters.take(&mut |edge, count| {
            let bit = bucket(count);
            if reached.len() <= edge {
                reached.resize(edge + 1, 0);
            }
            if reached[edge] & bit == 0 {
                reached[edge] |= bit;
                news.push((edge, bit));
            }
        });
        news
    }

    /// Returns true if the last input reached one of these buckets. The others depend on more than
    /// the input: on other threads, or on what is made once.
    pub(crate) fn has_again(&mut self, news: &News) -> bool {
        let mut is_there = false;
        // They are sorted by the edge.
        self.counters.take(&mut |edge, count| {
            let at = news.binary_search_by_key(&edge, |(edge, _)| *edge);
            is_there |= at.is_ok_and(|at| news[at].1 == bucket(count));
        });
        is_there
    }

    /// Returns how many edges were reached.
    pub(crate) fn edges(&self) -> usize {
        self.reached.iter().filter(|bits| **bits != 0).count()
    }
}

/// Returns the bit of a count: 1, 2, 3, 4 to 7, 8 to 15, 16 to 31, 32 to 127 and more. A loop that
/// runs once more is nothing new then, and one that runs twice as often is.
fn bucket(count: u8) -> u8 {
    match count {
        0 => 0,
        1 => 1,
        2 => 1 << 1,
        3 => 1 << 2,
        4..=7 => 1 << 3,
        8..=15 => 1 << 4,
        16..=31 => 1 << 5,
        32..=127 => 1 << 6,
        128.. => 1 << 7,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Counters that a test writes.
    impl Counters for BTreeMap<usize, u8> {
        fn take(&mut self, visit: &mut dyn FnMut(usize, u8)) {
            for (edge, count) in std::mem::take(self) {
                visit(edge, count);
            }
        }
    }

    #[test]
    fn each_count_has_one_bucket_and_greater_ones_no_smaller() {
        let buckets: Vec<_> = (1..=u8::MAX).map(bucket).collect();
        assert!(buckets.iter().all(|bit| bit.count_ones() == 1));
        assert!(buckets.is_sorted());
        let first = |at: &usize| *at == 0 || buckets[at - 1] != buckets[*at];
        let first: Vec<_> = (0..buckets.len()).filter(first).map(|at| at + 1).collect();
        assert_eq!(first, [1, 2, 3, 4, 8, 16, 32, 128]);
        assert_eq!(bucket(0), 0);
    }

    #[test]
    fn an_input_is_new_by_an_edge_or_by_how_often_it_is_reached() {
        let mut guide = Guide::new(BTreeMap::from([(3, 1)]));
        let mut news = |counts: &[(usize, u8)]| {
            guide.counters = counts.iter().copied().collect();
            guide.news()
        };
        assert_eq!(news(&[(3, 1), (9, 40)]), [(3, 1), (9, 64)]);
        assert_eq!(news(&[(3, 1), (9, 80)]), []);
        assert_eq!(news(&[(3, 2), (9, 80), (10, 1)]), [(3, 2), (10, 1)]);
        assert_eq!(news(&[(3, 1), (10, 1)]), []);
        assert_eq!(guide.edges(), 3);
    }

    #[test]
    fn what_comes_once_is_not_due_to_the_input() {
        let mut guide = Guide::new(BTreeMap::from([(1, 1), (5, 2)]));
        guide.counters = BTreeMap::from([(1, 1), (5, 2)]);
        let news = guide.news();
        for (counts, is_there) in [
            (vec![(1, 2), (4, 1), (5, 1)], false),
            (vec![], false),
            (vec![(5, 2)], true),
            (vec![(1, 1), (5, 1)], true),
        ] {
            guide.counters = counts.into_iter().collect();
            assert_eq!(guide.has_again(&news), is_there);
        }
    }
}
