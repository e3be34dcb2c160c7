//! `RandomSource`: sends packets of random bytes.

use element::prelude::*;
use packet::HEADROOM;

use super::bursts::{BurstArguments, BurstSource, PacketGenerator, handlers};

/// Packets must be shorter than this.
const MAX_LENGTH: i32 = 64 * 1024;

/// Sends packets of LENGTH random bytes as fast as possible, up to LIMIT packets.
///
/// It works like `InfiniteSource` otherwise.
/// ```click
/// RandomSource(100, LIMIT 10, STOP true) -> c :: Counter -> Discard;
/// ```
/// ```expect
/// c.byte_count = 1000
/// c.count = 10
/// ```
#[derive(Args)]
#[element(
    name = "RandomSource",
    group = "sources",
    ports = "0/1",
    processing = "a/a",
    task,
    notifies = "empty",
    shards = "first",
    see = "InfiniteSource",
    fates = "made"
)]
pub struct RandomSourceArgs {
    /// Packet length in bytes.
    #[arg(position)]
    length: i32,
    #[arg(flatten)]
    bursts: BurstArguments,
}

pub type RandomSource = BurstSource<RandomBytes>;

/// Creates packets of random bytes.
pub struct RandomBytes {
    length: usize,
}

/// Validates a length.
fn check_length(length: i32) -> Result<usize, String> {
    let allowed = usize::try_from(length).ok().filter(|_| length < MAX_LENGTH);
    allowed.ok_or_else(|| format!("bad length {length}"))
}

impl PacketGenerator for RandomBytes {
    type Args = RandomSourceArgs;
    const HANDLERS: &'static [Handler<RandomSource>] = handlers![
        Handler::read("length", "Packet length in bytes.", |source| source.maker.length.to_string()),
        Handler::setting("length", "Sets the packet length.", |source, cx, value| {
            let length = cx.argument(value).map_err(|_| HandlerError::new("length must be integer"))?;
            source.maker.length = check_length(length).map_err(HandlerError::new)?;
            source.resume(cx);
            Ok(())
        }),
    ];

    fn new(args: RandomSourceArgs) -> Result<(RandomBytes, BurstArguments), SetupError> {
        let length = check_length(args.length).map_err(SetupError::new)?;
        Ok((RandomBytes { length }, args.bursts))
    }

    fn produce(&mut self, cx: &mut Context, stamp: bool, count: usize, batch: &mut Batch) {
        for _ in 0..count {
            let Some(mut packet) = cx.allocate(HEADROOM, self.length) else { continue };
            let (words, rest) = packet.data_mut().as_chunks_mut();
            words.iter_mut().for_each(|word| *word = cx.random().to_ne_bytes());
            if !rest.is_empty() {
                rest.iter_mut().zip(cx.random().to_ne_bytes()).for_each(|(byte, random)| *byte = random);
            }
            if stamp {
                packet.set_timestamp(cx.now());
            }
            batch.push(packet);
        }
    }
}
