//! `InfiniteSource`: sends copies of a packet as fast as possible.

use element::arguments::Bytes;
use element::prelude::*;
use packet::HEADROOM;

use super::bursts::{BurstArguments, BurstSource, PacketGenerator, handlers};
use super::production;

/// Sends copies of a packet as fast as possible, up to LIMIT packets.
///
/// On a push output it sends BURST packets per task run and pauses while a downstream queue is full. On a pull output
/// it answers each pull. Packets contain DATA, cut or repeated to LENGTH bytes if LENGTH is given. TIMESTAMP false
/// leaves the timestamp unset. After the last packet, STOP true stops the driver, or END_CALL writes a handler. If no
/// other task waits, the task runs several times at once, so even BURST 1 fills batches.
///
/// ## Differences
///
/// A BURST above 4096 is spread over several task runs. Packets that the pool has no room for count both as sent and as
/// drops.
/// ```click
/// source :: InfiniteSource(DATA \<00 01 02>, LENGTH 60, LIMIT 1000, STOP true) -> counter :: Counter -> Discard;
/// ```
/// ```expect
/// source.count = 1000
/// counter.byte_count = 60000
/// counter.count = 1000
/// ```
#[derive(Args)]
#[element(
    name = "InfiniteSource",
    group = "sources",
    ports = "0/1",
    processing = "a/a",
    task,
    notifies = "empty",
    shards = "first",
    see = "RatedSource, TimedSource, RandomSource",
    fates = "made"
)]
pub struct InfiniteSourceArgs {
    /// Packet contents.
    #[arg(position, default = "Random bullshit in a packet, at least 64 bytes long. Well, now it is.")]
    data: Bytes,
    #[arg(flatten)]
    bursts: BurstArguments,
    /// Packet length in bytes; negative for the length of DATA.
    #[arg(default = "-1")]
    length: i32,
    /// Older name of LENGTH.
    datasize: Option<i32>,
}

pub type InfiniteSource = BurstSource<Copies>;

/// Creates identical packets.
pub struct Copies {
    data: Vec<u8>,
    length: i32,
    template: Option<Packet>,
}

impl Copies {
    fn make_template(&mut self, cx: &Context) -> Result<(), &'static str> {
        let length = usize::try_from(self.length).ok();
        self.template =
            Some(production::template(cx, &self.data, length, HEADROOM).ok_or("packet too large")?);
        Ok(())
    }
}

fn set_length(source: &mut InfiniteSource, cx: &mut Context, text: &str) -> Result<(), HandlerError> {
    source.maker.length = cx.argument(text).map_err(|_| HandlerError::new("length must be integer"))?;
    source.maker.make_template(cx).map_err(HandlerError::new)?;
    source.resume(cx);
    Ok(())
}

impl PacketGenerator for Copies {
    type Args = InfiniteSourceArgs;
    const HANDLERS: &'static [Handler<InfiniteSource>] = handlers![
        Handler::read("data", "Packet contents.", |source| {
            String::from_utf8_lossy(&source.maker.data).into_owned()
        }),
        Handler::setting("data", "Sets the packet contents.", |source, cx, value| {
            source.maker.data = value.as_bytes().to_vec();
            source.maker.make_template(cx).map_err(HandlerError::new)?;
            source.resume(cx);
            Ok(())
        }),
        Handler::read("length", "Packet length in bytes, or -1.", |source| source.maker.length.to_string()),
        Handler::setting("length", "Sets the packet length.", set_length),
        Handler::read("burstsize", "Older name of `burst`.", |source| source.burst.to_string()),
        Handler::setting("burstsize", "Older name of `burst`.", BurstSource::set_burst),
        Handler::read("datasize", "Older name of `length`.", |source| source.maker.length.to_string()),
        Handler::setting("datasize", "Older name of `length`.", set_length),
    ];

    fn new(args: InfiniteSourceArgs) -> Result<(Copies, BurstArguments), SetupError> {
        let length = args.datasize.unwrap_or(args.length);
        Ok((Copies { data: args.data.0, length, template: None }, args.bursts))
    }

    fn initialize(&mut self, cx: &Context) -> Result<(), SetupError> {
        self.make_template(cx).map_err(|problem| SetupError::argument("LENGTH", problem))
    }

    fn waiting(&self, waiting: &mut Waiting) {
        waiting.add_templates(usize::from(self.template.is_some()));
    }

    fn produce(&mut self, cx: &mut Context, stamp: bool, count: usize, batch: &mut Batch) {
        if self.template.is_none() && self.make_template(cx).is_err() {
            return;
        }
        let Some(template) = &mut self.template else { return };
        if stamp {
            template.set_timestamp(cx.now());
        }
        production::replicate(cx, template, count, batch);
    }
}
