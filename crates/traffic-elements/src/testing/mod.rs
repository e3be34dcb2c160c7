//! Elements that test tasks, timers and signals.

mod blockthread;
mod mtdietest;
mod notifierdebug;
mod schedordertest;
mod timertest;

pub use blockthread::BlockThread;
pub use mtdietest::MTDieTest;
pub use notifierdebug::NotifierDebug;
pub use schedordertest::SchedOrderTest;
pub use timertest::TimerTest;

element::classes![SchedOrderTest, TimerTest, NotifierDebug, MTDieTest, BlockThread,];
