//! The display order of learned addresses, which is that of Click's hash table, so that lists can be compared.

use element::prelude::*;

/// Buckets of an empty table. Each growth doubles the number and adds one.
const BUCKETS: usize = 63;

/// The hash of an address.
fn hash([a, b, c, d, e, f]: [u8; 6]) -> u32 {
    let [first, second, third] = [[a, b], [c, d], [e, f]].map(|pair| u32::from(u16::from_le_bytes(pair)));
    (third | second << 16) ^ first << 9
}

/// Sorts entries, given in the order in which they were learned, as Click lists them. Each is inserted at the front of
/// its bucket. With more than two entries per bucket, all are rehashed.
pub(super) fn in_click_order<T>(entries: impl Iterator<Item = ([u8; 6], T)>) -> Vec<([u8; 6], T)> {
    // A bucket is stored in reverse order.
    let mut buckets: Vec<Vec<([u8; 6], T)>> = Vec::new();
    buckets.resize_with(BUCKETS, Vec::new);
    for (count, entry) in (1..).zip(entries) {
        if count > 2 * buckets.len() {
            let more = 2 * buckets.len() + 1;
            let old = core::mem::take(&mut buckets);
            buckets.resize_with(more, Vec::new);
            for entry in old.into_iter().flat_map(|bucket| bucket.into_iter().rev()) {
                insert(&mut buckets, entry);
            }
        }
        insert(&mut buckets, entry);
    }
    buckets.into_iter().flat_map(|bucket| bucket.into_iter().rev()).collect()
}

fn insert<T>(buckets: &mut [Vec<([u8; 6], T)>], entry: ([u8; 6], T)) {
    let index = hash(entry.0) as usize % buckets.len().max(1);
    if let Some(bucket) = buckets.get_mut(index) {
        bucket.push(entry);
    }
}
