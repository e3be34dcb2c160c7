//! `ProgressBar`: draws a progress bar on the terminal.

use element::HandlerKind;
use element::arguments::{HandlerPath, SpaceSeparated};
use element::prelude::*;

use super::progressline::{Progress, STALLED};

/// The timer of the next redraw.
const DRAW_TIMER: usize = 0;

/// Draws a progress bar on the terminal, from handlers that return a position and a size.
///
/// The position is the sum of the POSHANDLERs. The size is the sum of the SIZEHANDLERs, read once. Without a size, a
/// mark moves back and forth. If standard error is not a terminal, nothing is drawn and `pos` stays 0.
/// ```click
/// dump :: FromDump(testdata/mix.pcap, STOP true) -> c :: Counter -> Discard;
/// bar :: ProgressBar(dump.filepos, dump.filesize, BANNER mix);
/// ```
/// ```expect
/// c.count = 2500
/// bar.poshandler = dump.filepos
/// ```
/// ## Differences
/// The bar is also drawn by a background process.
#[derive(Args)]
#[element(name = "ProgressBar", group = "control", ports = "0/0", upkeep, see = "FromDump, Script")]
pub struct ProgressBarArgs {
    /// Handlers of the position; their values are added.
    #[arg(position)]
    poshandler: SpaceSeparated<HandlerPath>,
    /// Handlers of the size; their values are added.
    #[arg(position, default = "")]
    sizehandler: SpaceSeparated<HandlerPath>,
    /// Time between redraws.
    #[arg(default = "0.25")]
    update: Timestamp,
    /// Text before the bar.
    #[arg(default = "")]
    banner: String,
    /// Whether it is drawn.
    #[arg(default = "true")]
    active: bool,
    /// Delay before the first drawing.
    #[arg(default = "0")]
    delay: Timestamp,
    /// Draw nothing if standard output is a terminal too.
    #[arg(default = "false")]
    check_stdout: bool,
    /// Size, instead of SIZEHANDLER.
    fixed_size: Option<f64>,
}

pub struct ProgressBar {
    args: ProgressBarArgs,
    state: State,
    size: Option<f64>,
    /// The largest position so far.
    position: f64,
    start: Timestamp,
    /// Time of the last progress.
    moved: Timestamp,
    /// Total time without progress.
    stalls: Timestamp,
}

/// The state of drawing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// There is no terminal.
    Dead,
    /// Nothing is drawn yet.
    Fresh,
    /// It is drawn again and again.
    Drawing,
    /// The last line has been drawn.
    Over,
}

impl Element for ProgressBar {
    type Args = ProgressBarArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::action("mark_stopped", "Draws a last line that marks the task as stopped.", |bar, cx, _| {
            bar.finish(cx, false);
            Ok(())
        }),
        Handler::action("mark_done", "Draws a last line that marks the task as done.", |bar, cx, _| {
            bar.finish(cx, true);
            Ok(())
        }),
        Handler::read("active", "Whether the bar is drawn.", |bar| bar.args.active.to_string()),
        Handler::setting("active", "Turns drawing on or off.", |bar, cx, value| {
            bar.args.active = cx.argument(value).map_err(|_| HandlerError::new("type mismatch"))?;
            if bar.args.active && cx.timer(DRAW_TIMER).is_none() {
                cx.set_timer(DRAW_TIMER, cx.steady());
            }
            Ok(())
        }),
        Handler::read("banner", "Text before the bar.", |bar| bar.args.banner.clone()),
        Handler::setting("banner", "Sets the text before the bar.", |bar, _, value| {
            bar.args.banner = value.into();
            Ok(())
        }),
        Handler::read("poshandler", "Handlers of the position.", |bar| list(&bar.args.poshandler)),
        Handler::setting("poshandler", "Sets the handlers of the position.", |bar, cx, value| {
            bar.args.poshandler = checked(cx, cx.argument(value)?)?;
            Ok(())
        }),
        Handler::read("sizehandler", "Handlers of the size.", |bar| list(&bar.args.sizehandler)),
        Handler::setting(
            "sizehandler",
            "Sets the handlers of the size, and reads them again.",
            |bar, cx, value| {
                bar.args.sizehandler = checked(cx, cx.argument(value)?)?;
                bar.size = None;
                Ok(())
            },
        ),
        Handler::read("pos", "Position at the last drawing.", |bar| bar.position.to_string()),
        Handler::read("size", "Size; -1 if unknown.", |bar| bar.size.unwrap_or(-1.0).to_string()),
        Handler::setting("size", "Sets the size.", |bar, cx, value| {
            bar.size = Some(cx.argument(value)?);
            Ok(())
        }),
        Handler::action("reset", "Starts over, and sets ACTIVE.", |bar, cx, _| {
            bar.size = None;
            bar.args.active = true;
            if bar.state != State::Dead {
                bar.state = State::Fresh;
                cx.set_timer(DRAW_TIMER, cx.steady());
            }
            Ok(())
        }),
    ];

    fn new(args: ProgressBarArgs, _: &mut Setup) -> Result<ProgressBar, SetupError> {
        let zero = Timestamp::ZERO;
        let (size, state) = (args.fixed_size, State::Dead);
        Ok(ProgressBar { args, state, size, position: 0.0, start: zero, moved: zero, stalls: zero })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        for (keyword, handlers) in
            [("POSHANDLER", &self.args.poshandler), ("SIZEHANDLER", &self.args.sizehandler)]
        {
            check(cx, handlers).map_err(|error| SetupError::argument(keyword, error))?;
        }
        let terminal = cx.environment().terminal();
        if terminal.is_some_and(|terminal| !(self.args.check_stdout && terminal.output)) {
            self.state = State::Fresh;
            if self.args.active {
                cx.set_timer(DRAW_TIMER, cx.steady());
            }
        }
        Ok(())
    }

    fn timer(&mut self, cx: &mut Context, _: usize) {
        self.draw(cx, false);
    }

    fn cleanup(&mut self, cx: &mut Context) {
        if self.state == State::Drawing {
            self.draw(cx, true);
        }
    }
}

impl ProgressBar {
    /// Draws the last line. With `done`, the size becomes the current position.
    fn finish(&mut self, cx: &Context, done: bool) {
        if self.state == State::Over || !self.args.active {
            return;
        }
        if done {
            self.size = sum(cx, &self.args.poshandler);
        }
        cx.clear_timer(DRAW_TIMER);
        self.draw(cx, true);
    }

    fn draw(&mut self, cx: &Context, last: bool) {
        let Some(terminal) = cx.environment().terminal() else { return };
        if !self.args.active || self.state == State::Dead {
            return;
        }
        let now = cx.steady();
        if self.state == State::Fresh {
            self.size = self.size.or_else(|| sum(cx, &self.args.sizehandler));
            (self.position, self.start, self.moved, self.stalls) = (0.0, now, now, Timestamp::ZERO);
            self.state = State::Drawing;
        }
        let due = self.start + self.args.delay;
        if now < due && !last {
            return cx.set_timer(DRAW_TIMER, due);
        }
        let position = sum(cx, &self.args.poshandler);
        let mut stall = now - self.moved;
        if position.is_some_and(|position| position > self.position) {
            self.position = position.unwrap_or_default();
            self.moved = now;
            if stall.seconds() >= STALLED {
                self.stalls += stall;
            }
            stall = Timestamp::ZERO;
        }
        let progress = Progress {
            position,
            size: self.size,
            fixed: self.size.is_some() && self.args.sizehandler.0.is_empty(),
            elapsed: (now - self.start - self.stalls).nanos() as f64 / 1e9,
            stalled: stall.seconds() >= STALLED,
            over: last,
        };
        cx.environment().draw(&progress.line(&self.args.banner, terminal.columns), last);
        if last {
            self.state = State::Over;
            self.args.active = false;
        } else {
            cx.set_timer(DRAW_TIMER, now + self.args.update);
        }
    }
}

/// The sum of the handlers' values; `None` if there are none, or one is not a number.
fn sum(cx: &Context, handlers: &SpaceSeparated<HandlerPath>) -> Option<f64> {
    let values = handlers.0.iter().map(|path| {
        let value = cx.read_handler(&path.0, "").ok()?;
        value.trim().parse().ok().filter(|value: &f64| value.is_finite())
    });
    values.reduce(|sum, value| Some(sum? + value?)).flatten()
}

/// Checks that all handlers can be read.
fn check(cx: &Context, handlers: &SpaceSeparated<HandlerPath>) -> Result<(), HandlerError> {
    for HandlerPath(path) in &handlers.0 {
        let target = cx.runtime().resolve(cx.element(), path)?;
        let listed = cx.runtime().handlers(target.element);
        if !listed.iter().any(|info| info.name == target.handler && info.kind != HandlerKind::Write) {
            return Err(HandlerError::new(HandlerError::NoHandler(path.clone()).of_call(true)));
        }
    }
    Ok(())
}

fn checked(
    cx: &Context,
    handlers: SpaceSeparated<HandlerPath>,
) -> Result<SpaceSeparated<HandlerPath>, HandlerError> {
    check(cx, &handlers).map(|()| handlers)
}

fn list(handlers: &SpaceSeparated<HandlerPath>) -> String {
    let paths: Vec<&str> = handlers.0.iter().map(|path| &*path.0).collect();
    paths.join(" ")
}
