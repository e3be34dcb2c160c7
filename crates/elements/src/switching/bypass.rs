//! `Bypass`: leads packets through an optional detour.

use element::prelude::*;

/// Passes packets from input 0 to output 0, or when ACTIVE to the detour that is connected to its ports 1.
///
/// When packets are pushed, an active element sends what comes by input 0 to output 1; what comes back by input 1 goes
/// to output 0. When they are pulled, an active element answers pulls at output 0 from input 1, and pulls at output 1
/// always from input 0. So the detour is written the same way for both: `b[1] -> Print -> [1]b`. Without ports 1 the
/// element is as good as inactive.
///
/// ## Differences
/// With INLINE false Click reconnects the neighbours so that no packet passes the element itself. Here it costs a call
/// for each batch that is pushed and none for pulls, INLINE or not.
///
/// ```click
/// InfiniteSource(LIMIT 3, STOP true) -> b :: Bypass(true) -> all :: Counter -> Discard;
/// b[1] -> detour :: Counter -> [1]b;
/// ```
/// ```expect
/// b.active = true
/// all.count = 3
/// detour.count = 3
/// ```
#[derive(Args)]
#[element(
    name = "Bypass",
    group = "switching",
    ports = "1-2/1-2",
    flow = "xy/[xy]x",
    order_insensitive,
    see = "Switch, PullSwitch, Null"
)]
pub struct BypassArgs {
    /// Whether the detour is taken.
    #[arg(position, default = "false")]
    active: bool,
    /// Whether the element may not be skipped.
    #[arg(default = "false")]
    #[allow(dead_code, reason = "the element is never skipped")]
    inline: bool,
}

/// The element.
pub struct Bypass {
    active: bool,
}

impl Element for Bypass {
    type Args = BypassArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("active", "Whether the detour is taken.", |bypass| bypass.active.to_string()),
        Handler::write("active", "Takes the detour, or not.", |bypass, cx, value| {
            bypass.active = cx.argument(value).map_err(|_| HandlerError::new("syntax error"))?;
            bypass.relay(cx);
            Ok(())
        }),
    ];

    fn new(args: BypassArgs, _: &mut Setup) -> Result<Bypass, SetupError> {
        Ok(Bypass { active: args.active })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        self.relay(cx);
        Ok(())
    }

    #[inline]
    fn push(&mut self, cx: &mut Context, port: usize, batch: Batch) {
        let detour = self.active && port == 0 && cx.outputs() > 1;
        cx.emit(usize::from(detour), batch);
    }
}

impl Bypass {
    /// Pulls never call the element: those of the detour come back to it while the ones that they serve are under way.
    fn relay(&self, cx: &Context) {
        let detour = self.active && cx.inputs() > 1;
        cx.relay(0, Some(usize::from(detour)));
        cx.relay(1, Some(0));
    }
}
