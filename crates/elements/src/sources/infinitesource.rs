//! `InfiniteSource`: makes packets whenever it may.

use element::arguments::Bytes;
use element::prelude::*;
use packet::HEADROOM;

use super::bursts::{BurstArguments, BurstSource, Maker, handlers};
use super::production;

/// Makes packets of DATA, BURST each time it is scheduled or one for each pull, until there were LIMIT.
///
/// With LENGTH the data are cut or repeated to that many bytes. TIMESTAMP false leaves the time unset. After the last
/// packet STOP true stops the driver, or END_CALL writes a handler. On a push output it waits while what is downstream
/// is full. When no other task waits, it takes several turns at once, so that BURST 1 still makes full batches.
///
/// ## Differences
///
/// A BURST above 4096 is spread over several turns. Packets that the pool has no room for count as sent and as drops.
/// ```click
/// source :: InfiniteSource(DATA \<00 01 02>, LENGTH 60, LIMIT 1000, STOP true) -> counter :: Counter -> Discard;
/// ```
/// ```expect
/// source.count = 1000
/// counter.byte_count = 60000
/// ```
#[derive(Args)]
#[element(
    name = "InfiniteSource",
    group = "sources",
    ports = "0/1",
    processing = "a/a",
    task,
    notifies = "empty",
    see = "RatedSource, TimedSource, RandomSource"
)]
pub struct InfiniteSourceArgs {
    /// The bytes of each packet.
    #[arg(position, default = "Random bullshit in a packet, at least 64 bytes long. Well, now it is.")]
    data: Bytes,
    #[arg(flatten)]
    bursts: BurstArguments,
    /// Bytes of each packet; negative for those of DATA.
    #[arg(default = "-1")]
    length: i32,
    /// An older name of LENGTH.
    datasize: Option<i32>,
}

/// The element.
pub type InfiniteSource = BurstSource<Copies>;

/// Makes packets that are all the same.
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

impl Maker for Copies {
    type Args = InfiniteSourceArgs;
    const HANDLERS: &'static [Handler<InfiniteSource>] = handlers![
        Handler::read("data", "Bytes of each packet.", |source| {
            String::from_utf8_lossy(&source.maker.data).into_owned()
        }),
        Handler::write("data", "Sets the bytes of each packet.", |source, cx, value| {
            source.maker.data = value.as_bytes().to_vec();
            source.maker.make_template(cx).map_err(HandlerError::new)?;
            source.resume(cx);
            Ok(())
        }),
        Handler::read("length", "Bytes of each packet, or -1.", |source| source.maker.length.to_string()),
        Handler::write("length", "Sets the bytes of each packet.", set_length),
        Handler::read("burstsize", "An older name of `burst`.", |source| source.burst.to_string()),
        Handler::write("burstsize", "An older name of `burst`.", BurstSource::set_burst),
        Handler::read("datasize", "An older name of `length`.", |source| source.maker.length.to_string()),
        Handler::write("datasize", "An older name of `length`.", set_length),
    ];

    fn new(args: InfiniteSourceArgs) -> Result<(Copies, BurstArguments), SetupError> {
        let length = args.datasize.unwrap_or(args.length);
        Ok((Copies { data: args.data.0, length, template: None }, args.bursts))
    }

    fn initialize(&mut self, cx: &Context) -> Result<(), SetupError> {
        self.make_template(cx).map_err(|problem| SetupError::argument("LENGTH", problem))
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
