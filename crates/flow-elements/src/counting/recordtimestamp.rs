//! `RecordTimestamp`: notes when each numbered packet passes.

use core::any::Any;
use core::cell::{Cell, RefCell};

use element::arguments::ElementName;
use element::prelude::*;

use super::numberpacket::{ByteOrder, number};

/// Maximum number of recorded times. The numbers come from packets, which could otherwise make the record take all memory.
const MAX_TIMES: u64 = 1 << 24;

/// Notes when each packet passes, for TimestampDiff.
///
/// A packet is known by the number at OFFSET, which NumberPacket writes. Without OFFSET, the packets are numbered as they come.
/// Numbers of N and above are not recorded, unless DYNAMIC; 16,777,216 is the limit. With SAMPLE, only packets are recorded
/// whose number is a multiple of it.
/// ```click
/// InfiniteSource(LENGTH 60, LIMIT 5, STOP true) -> NumberPacket(40) -> r :: RecordTimestamp(N 4, OFFSET 40)
///     -> d :: TimestampDiff(r, OFFSET 40) -> known :: Counter -> Discard;
/// d[1] -> unknown :: Counter -> Discard;
/// ```
/// ```expect
/// known.count = 4
/// unknown.count = 1
/// d.index = 3
/// ```
/// ## Differences
/// The class is one of FastClick. There, a number of N or above ends the program.
#[derive(Args)]
#[element(name = "RecordTimestamp", group = "counting", see = "TimestampDiff, NumberPacket")]
pub(crate) struct RecordTimestampArgs {
    /// The NumberPacket whose byte order holds here.
    counter: Option<ElementName>,
    /// Number of times to record; 0 for 65536.
    #[arg(default = "0")]
    n: u32,
    /// Offset of the number from the start of the packet, in bytes; negative to number packets as they come.
    #[arg(default = "-1")]
    offset: i32,
    /// Record times beyond N.
    #[arg(default = "false")]
    dynamic: bool,
    /// The number has its highest byte first.
    #[arg(default = "false")]
    net_order: bool,
    /// Record one of this many packets.
    #[arg(default = "0")]
    sample: u32,
}

/// What is recorded, which TimestampDiff reads.
pub(super) struct Record {
    /// The time of each number, in nanoseconds; 0 if it is not known.
    times: RefCell<Vec<i64>>,
    sample: u64,
    pub(super) net_order: Cell<bool>,
}

impl Record {
    /// The place of a number, if it is recorded.
    fn place(&self, number: u64) -> Option<usize> {
        usize::try_from(number / self.sample).ok().filter(|_| number.is_multiple_of(self.sample))
    }

    /// When the packet of this number passed, in nanoseconds.
    pub(super) fn time(&self, number: u64) -> Option<i64> {
        self.times.borrow().get(self.place(number)?).copied().filter(|time| *time != 0)
    }
}

pub(crate) struct RecordTimestamp {
    args: RecordTimestampArgs,
    record: Rc<Record>,
    /// The number of the next packet, if they have none of their own.
    next: u64,
}

impl Filter for RecordTimestamp {
    type Args = RecordTimestampArgs;

    fn new(args: RecordTimestampArgs, _: &mut Setup) -> Result<RecordTimestamp, SetupError> {
        let (sample, net_order) = (args.sample.max(1).into(), Cell::new(args.net_order));
        let record = Rc::new(Record { times: RefCell::default(), sample, net_order });
        Ok(RecordTimestamp { args, record, next: 0 })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        if let Some(ElementName(name)) = &self.args.counter {
            let found = cx.runtime().find(cx.element(), name);
            let order = found.and_then(|index| cx.runtime().export(index)?.downcast::<ByteOrder>().ok());
            let missing = || SetupError::argument("COUNTER", "must be a valid NumberPacket element");
            self.record.net_order.set(order.ok_or_else(missing)?.is_network);
        }
        Ok(())
    }

    fn export(&self) -> Option<Rc<dyn Any>> {
        Some(self.record.clone())
    }

    fn filter(&mut self, cx: &mut Context, packet: Packet) -> Verdict {
        let found = match usize::try_from(self.args.offset) {
            Ok(offset) => number(&packet, offset, self.record.net_order.get()),
            Err(_) => {
                self.next += 1;
                Some(self.next - 1)
            }
        };
        let limit = match (self.args.dynamic, self.args.n) {
            (true, _) => MAX_TIMES,
            (false, 0) => 65_536,
            (false, n) => u64::from(n).min(MAX_TIMES),
        };
        let place =
            found.and_then(|number| self.record.place(number)).filter(|place| (*place as u64) < limit);
        if let Some(place) = place {
            let mut times = self.record.times.borrow_mut();
            if times.len() <= place {
                times.resize(place + 1, 0);
            }
            if let Some(time) = times.get_mut(place) {
                *time = cx.steady().nanos();
            }
        }
        Verdict::Pass(packet)
    }

    fn inherit(&mut self, old: &mut RecordTimestamp, _: &mut Context) {
        self.next = old.next;
        self.record.times.swap(&old.record.times);
    }
}
