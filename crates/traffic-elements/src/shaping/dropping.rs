//! Push and pull through an element that drops packets early.

use element::prelude::*;

/// Pushes the packets that `process` returns.
pub(crate) fn push_survivors(
    cx: &mut Context,
    mut batch: Batch,
    mut process: impl FnMut(&mut Context, Packet) -> Option<Packet>,
) {
    if cx.outputs() < 2 {
        batch.filter_map(|packet| process(cx, packet));
        return cx.emit(0, batch);
    }
    for packet in batch.drain() {
        if let Some(packet) = process(cx, packet) {
            cx.send(0, packet);
        }
    }
    cx.recycle(batch);
}

/// Pulls until `process` has returned enough packets, or the input is empty.
pub(crate) fn pull_survivors(
    cx: &mut Context,
    most: usize,
    into: &mut Batch,
    mut process: impl FnMut(&mut Context, Packet) -> Option<Packet>,
) {
    let mut left = most;
    while left > 0 {
        let Some(packet) = cx.pull_one(0) else { return };
        if let Some(packet) = process(cx, packet) {
            into.push(packet);
            left -= 1;
        }
    }
}

/// Sends a packet to output 1 if that exists, or drops it as `early_drop`.
pub(crate) fn discard(cx: &mut Context, packet: Packet) {
    if cx.outputs() < 2 {
        cx.drop(packet, Reason::EARLY_DROP);
    } else {
        cx.send(1, packet);
    }
}
