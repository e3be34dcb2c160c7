//! The order in which addresses that were learnt are listed: that of Click's hash table, so that lists can be compared.

use element::prelude::*;

/// Buckets of an empty table; from then on twice as many and one.
const BUCKETS: usize = 63;

/// The number that stands for an address in the table.
fn hash([a, b, c, d, e, f]: [u8; 6]) -> u32 {
    let [first, second, third] = [[a, b], [c, d], [e, f]].map(|pair| u32::from(u16::from_le_bytes(pair)));
    (third | second << 16) ^ first << 9
}

/// Entries, given in the order in which they were learnt, as Click lists them. Each is put in front of those in its
/// bucket; with more than two entries a bucket all of them move.
pub(super) fn listed<T>(entries: impl Iterator<Item = ([u8; 6], T)>) -> Vec<([u8; 6], T)> {
    // The front of a bucket is its end.
    let mut buckets: Vec<Vec<([u8; 6], T)>> = Vec::new();
    buckets.resize_with(BUCKETS, Vec::new);
    for (count, entry) in (1..).zip(entries) {
        if count > 2 * buckets.len() {
            let more = 2 * buckets.len() + 1;
            let old = core::mem::take(&mut buckets);
            buckets.resize_with(more, Vec::new);
            for entry in old.into_iter().flat_map(|bucket| bucket.into_iter().rev()) {
                put(&mut buckets, entry);
            }
        }
        put(&mut buckets, entry);
    }
    buckets.into_iter().flat_map(|bucket| bucket.into_iter().rev()).collect()
}

fn put<T>(buckets: &mut [Vec<([u8; 6], T)>], entry: ([u8; 6], T)) {
    let place = hash(entry.0) as usize % buckets.len().max(1);
    if let Some(bucket) = buckets.get_mut(place) {
        bucket.push(entry);
    }
}
