//! The element behind all header checks, which differ in what they check.

use element::prelude::*;

use super::faults::{FaultArguments, FaultCounters, HeaderFault};

/// A header check.
pub trait Check: Sized + 'static {
    type Args: Args;
    /// The possible faults, in the order of `drop_details`.
    const REASONS: &'static [HeaderFault];

    /// Creates the check from the arguments.
    fn new(args: Self::Args, setup: &Setup) -> Result<(Self, FaultArguments), SetupError>;

    /// Checks a packet. Returns the index of its fault in `REASONS`. May set annotations of a valid packet.
    fn fault(&self, packet: &mut Packet) -> Option<usize>;

    /// The fast path of `fault`: whether a packet that needs only inspection is valid. Otherwise returns false and
    /// changes nothing.
    #[inline(always)]
    fn pass(&self, packet: &mut Packet) -> bool {
        self.fault(packet).is_none()
    }

    /// What was checked, for the log.
    fn subject(cx: &Context) -> String;
}

/// Separates packets with valid headers.
pub struct Checker<C> {
    check: C,
    faults: FaultCounters,
}

impl<C: Check> Filter for Checker<C> {
    type Args = C::Args;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("drops", "Packets that failed the check.", |element| element.faults.drops()),
        Handler::read_with(
            "drop_details",
            "Packets that failed the check, by reason, if DETAILS is set.",
            |element, _, _| element.faults.details(),
        ),
    ];

    fn new(args: C::Args, setup: &mut Setup) -> Result<Self, SetupError> {
        let (check, args) = C::new(args, setup)?;
        Ok(Checker { check, faults: FaultCounters::new(C::REASONS, args) })
    }

    #[inline(always)]
    fn pass(&mut self, packet: &mut Packet) -> bool {
        self.check.pass(packet)
    }

    #[inline(always)]
    fn filter(&mut self, cx: &mut Context, mut packet: Packet) -> Verdict {
        match self.check.fault(&mut packet) {
            None => Verdict::Pass(packet),
            Some(reason) => self.faults.reject(cx, packet, reason, || C::subject(cx)),
        }
    }
}
