//! The elements that separate packets with sound headers, but for what is sound.

use element::prelude::*;

use super::tally::{HeaderFault, Tally, TallyArguments};

/// What is sound.
pub trait Check: Sized + 'static {
    /// The element's arguments.
    type Args: Args;
    /// What can be wrong, in the order of `drop_details`.
    const REASONS: &'static [HeaderFault];

    /// As the arguments say.
    fn new(args: Self::Args, setup: &Setup) -> Result<(Self, TallyArguments), SetupError>;

    /// The place of the fault among the reasons, if there is one. It may mark a packet that has none.
    fn fault(&self, packet: &mut Packet) -> Option<usize>;

    /// As `fault`, whether there is none, for a packet that needs no more than a look; else `false`, and nothing is
    /// changed.
    #[inline(always)]
    fn pass(&self, packet: &mut Packet) -> bool {
        self.fault(packet).is_none()
    }

    /// What was checked, as the console is told.
    fn subject(cx: &Context) -> String;
}

/// Separates packets with sound headers.
pub struct Checker<C> {
    check: C,
    tally: Tally,
}

impl<C: Check> Filter for Checker<C> {
    type Args = C::Args;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("drops", "Packets that failed the check.", |element| element.tally.drops()),
        Handler::read_with(
            "drop_details",
            "Packets that failed the check, by reason, if DETAILS is set.",
            |element, _, _| element.tally.details(),
        ),
    ];

    fn new(args: C::Args, setup: &mut Setup) -> Result<Self, SetupError> {
        let (check, args) = C::new(args, setup)?;
        Ok(Checker { check, tally: Tally::new(C::REASONS, args) })
    }

    #[inline(always)]
    fn pass(&mut self, packet: &mut Packet) -> bool {
        self.check.pass(packet)
    }

    #[inline(always)]
    fn filter(&mut self, cx: &mut Context, mut packet: Packet) -> Verdict {
        match self.check.fault(&mut packet) {
            None => Verdict::Pass(packet),
            Some(reason) => self.tally.refuse(cx, packet, reason, || C::subject(cx)),
        }
    }
}
