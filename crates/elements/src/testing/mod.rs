//! Elements that show how tasks, timers and signals behave, for tests.

use element::Class;

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

/// The classes of this group, in the order of the reference.
pub static CLASSES: &[Class] = &[
    Class::of::<SchedOrderTest>(),
    Class::of::<TimerTest>(),
    Class::of::<NotifierDebug>(),
    Class::of::<MTDieTest>(),
    Class::of::<BlockThread>(),
];
