//! `Hub`: repeats packets to all other ports.

use element::prelude::*;

/// Repeats each packet to all outputs except the one with the number of its input, like an Ethernet hub.
///
/// Packets may be of any type.
/// ```click
/// InfiniteSource(LIMIT 3, STOP true) -> h :: Hub;
/// Idle -> [1] h;
/// Idle -> [2] h;
/// h[0] -> a :: Counter -> Discard;
/// h[1] -> b :: Counter -> Discard;
/// h[2] -> c :: Counter -> Discard;
/// ```
/// ```expect
/// a.count = 0
/// b.count = 3
/// c.count = 3
/// ```
#[derive(Args)]
#[element(
    name = "Hub",
    group = "switching",
    ports = "-/=",
    processing = "h/h",
    flow = "#/[^#]",
    order_insensitive,
    shards = "independent",
    see = "Tee, EtherSwitch",
    drops = "no_other_port",
    fates = "copied"
)]
pub struct HubArgs {}

pub struct Hub;

impl Element for Hub {
    type Args = HubArgs;

    fn new(_: HubArgs, _: &mut Setup) -> Result<Hub, SetupError> {
        Ok(Hub)
    }

    fn push(&mut self, cx: &mut Context, port: usize, mut batch: Batch) {
        let outputs = cx.outputs();
        let Some(last) = (0..outputs).rev().find(|output| *output != port) else {
            return cx.drop_batch(batch, Reason::NO_OTHER_PORT);
        };
        for packet in batch.drain() {
            for output in (0..last).filter(|output| *output != port) {
                if let Some(copy) = cx.duplicate(&packet) {
                    cx.send(output, copy);
                }
            }
            cx.send(last, packet);
        }
        cx.recycle(batch);
    }
}
