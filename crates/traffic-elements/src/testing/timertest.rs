//! `TimerTest`: logs when its timer fires.

use element::prelude::*;

/// Logs a line when its timer fires, with the time that it was set to. For tests.
///
/// DELAY sets the timer after the start; handlers set it later.
/// ```click
/// late :: TimerTest(DELAY 20ms);  early :: TimerTest(DELAY 10ms);
/// DriverManager(wait 15ms, stop);
/// ```
/// ```expect
/// late.scheduled = true
/// early.scheduled = false
/// ```
/// ## Differences
/// Without arguments, nothing is tested. BENCHMARK does not exist: it measures Click's internals.
#[derive(Args)]
#[element(name = "TimerTest", group = "testing", ports = "0/0", see = "SchedOrderTest")]
pub struct TimerTestArgs {
    /// Time from the start until the timer fires.
    delay: Option<Timestamp>,
    /// Set the timer at the start even without DELAY.
    #[arg(default = "false")]
    schedule: bool,
}

pub struct TimerTest {
    args: TimerTestArgs,
    /// The time at which the timer fires, or last fired.
    expiry: Timestamp,
}

impl Element for TimerTest {
    type Args = TimerTestArgs;
    const HANDLERS: &'static [Handler<Self>] = &[
        Handler::read_with("scheduled", "Whether the timer is set.", |_, cx, _| {
            Ok(cx.timer(0).is_some().to_string())
        }),
        Handler::action("scheduled", "Sets the timer to its last time, or cancels it.", |test, cx, value| {
            let schedule = cx.argument(value).map_err(|_| HandlerError::new("syntax error"))?;
            if schedule {
                cx.set_timer(0, test.expiry)
            } else {
                cx.clear_timer(0)
            }
            Ok(())
        }),
        Handler::read("expiry", "When the timer fires, or last fired.", |test| test.expiry.to_string()),
        Handler::action("schedule_after", "Sets the timer to a time from now.", |test, cx, value| {
            let delay = cx.argument(value).map_err(|_| HandlerError::new("syntax error"))?;
            test.set(cx, delay);
            Ok(())
        }),
        Handler::action("unschedule", "Cancels the timer.", |_, cx, _| {
            cx.clear_timer(0);
            Ok(())
        }),
    ];

    fn new(args: TimerTestArgs, _: &mut Setup) -> Result<TimerTest, SetupError> {
        Ok(TimerTest { args, expiry: Timestamp::ZERO })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        let delay = self.args.delay.unwrap_or(Timestamp::ZERO);
        if self.args.schedule || delay != Timestamp::ZERO {
            self.set(cx, delay);
        }
        Ok(())
    }

    fn timer(&mut self, cx: &mut Context, _: usize) {
        cx.log_between_packets(&format!("{}: {} :: TimerTest fired", self.expiry, cx.name()));
    }
}

impl TimerTest {
    fn set(&mut self, cx: &Context, delay: Timestamp) {
        self.expiry = cx.steady() + delay;
        cx.set_timer_after(0, delay);
    }
}
