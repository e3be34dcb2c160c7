//! `Bypass`: sends packets through an optional detour.

use element::prelude::*;

/// Passes packets from input 0 to output 0, or, if ACTIVE, through a detour.
///
/// Connect the detour between output 1 and input 1: `b[1] -> Print -> [1]b`. On a push path, an active Bypass sends
/// packets from input 0 to output 1, and packets from input 1 to output 0. On a pull path, it answers pulls at output 0
/// from input 1, and pulls at output 1 always from input 0. With one input and one output, it passes packets unchanged.
///
/// ## Differences
/// With INLINE false, Click reconnects the neighbours so that packets skip the element. Here the element costs one
/// call per pushed batch and nothing on pull paths, regardless of INLINE.
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
    shards = "independent",
    see = "Switch, PullSwitch, Null"
)]
pub struct BypassArgs {
    /// Send packets through the detour.
    #[arg(position, default = "false")]
    active: bool,
    /// Keep the element in the path.
    #[arg(default = "false")]
    #[allow(dead_code, reason = "the element is never skipped")]
    inline: bool,
}

pub struct Bypass {
    active: bool,
}

impl Element for Bypass {
    type Args = BypassArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read("active", "Whether packets take the detour.", |bypass| bypass.active.to_string()),
        Handler::setting("active", "Switches the detour in or out.", |bypass, cx, value| {
            bypass.active = cx.argument(value).map_err(|_| HandlerError::new("syntax error"))?;
            bypass.forward_pulls(cx);
            Ok(())
        }),
    ];

    fn new(args: BypassArgs, _: &mut Setup) -> Result<Bypass, SetupError> {
        Ok(Bypass { active: args.active })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        self.forward_pulls(cx);
        Ok(())
    }

    #[inline]
    fn push(&mut self, cx: &mut Context, port: usize, batch: Batch) {
        let detour = self.active && port == 0 && cx.outputs() > 1;
        cx.emit(usize::from(detour), batch);
    }
}

impl Bypass {
    /// Passes pulls through. The element is not called for pulls, since those of the detour return to it while the
    /// pulls that they serve are in progress.
    fn forward_pulls(&self, cx: &Context) {
        let detour = self.active && cx.inputs() > 1;
        cx.forward_pulls(0, Some(usize::from(detour)));
        cx.forward_pulls(1, Some(0));
    }
}
