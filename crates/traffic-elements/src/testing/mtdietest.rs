//! `MTDieTest`: stops the driver once for each thread.

use element::prelude::*;

/// Stops the driver once per thread, all at once. For tests.
///
/// A `DriverManager` shows that no stop is lost, and that simultaneous stops do not stop it twice.
/// ```click
/// MTDieTest(NTHREADS 3);
/// s :: DriverManager(export stops 0, wait, set stops $(add $stops 1), wait, set stops $(add $stops 1),
///     wait, set stops $(add $stops 1), stop);
/// ```
/// ```expect
/// s.stops = 3
/// ```
/// ## Differences
/// One thread runs the tasks of all threads.
#[derive(Args)]
#[element(
    name = "MTDieTest",
    group = "testing",
    ports = "0/0",
    task,
    see = "DriverManager, StaticThreadSched"
)]
pub struct MTDieTestArgs {
    /// Number of threads; all by default.
    nthreads: Option<u32>,
}

pub struct MTDieTest {
    left: u32,
}

impl Element for MTDieTest {
    type Args = MTDieTestArgs;

    fn new(args: MTDieTestArgs, setup: &mut Setup) -> Result<MTDieTest, SetupError> {
        let threads = u32::try_from(setup.threads).unwrap_or(u32::MAX);
        Ok(MTDieTest { left: args.nthreads.unwrap_or(threads) })
    }

    fn initialize(&mut self, cx: &mut Context) -> Result<(), SetupError> {
        if self.left > 0 {
            cx.schedule();
        }
        Ok(())
    }

    fn task(&mut self, cx: &mut Context) -> bool {
        cx.stop();
        // A handler may schedule the task again after it has finished.
        self.left = self.left.saturating_sub(1);
        if self.left > 0 {
            cx.schedule();
        }
        false
    }
}
