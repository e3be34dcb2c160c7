//! Orders for many boxes, several at a time.

use parking_lot::Mutex;

/// How many orders are given at the same time. With more, the fabric's threads that wait for boxes take the time of those
/// that start them.
const THREADS: usize = 6;

/// Calls `f` for all items, several at a time: a box that starts or stops waits most of the time.
pub(super) fn in_parallel<T: Send>(
    items: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator + Send>,
    f: impl Fn(T) + Sync,
) {
    let items = items.into_iter();
    let others = THREADS.min(items.len()).saturating_sub(1);
    let items = Mutex::new(items);
    let work = || {
        loop {
            let Some(item) = items.lock().next() else { return };
            f(item);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..others {
            scope.spawn(work);
        }
        work();
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_item_is_used_once() {
        for count in [0, 1, 3, 100] {
            let used = Mutex::new(Vec::new());
            in_parallel(0..count, |item| used.lock().push(item));
            let mut used = used.into_inner();
            used.sort_unstable();
            assert_eq!(used, (0..count).collect::<Vec<_>>());
        }
    }
}
