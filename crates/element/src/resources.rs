//! What the elements of a router share, apart from its graph.

use alloc::rc::{Rc, Weak};
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

use packet::{Pool, Timestamp};

use crate::batch_limits::BatchLimits;
use crate::clock::Clock;
use crate::deferred::Deferred;
use crate::driver::Driver;
use crate::drops::UserReasons;
use crate::environment::Environment;
use crate::names::Names;
use crate::random::SharedRandom;
use crate::shard::Shard;
use crate::tap::LogTap;

/// A remark of an element during setup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetupRemark {
    /// The element's index.
    pub element: usize,
    /// Whether it is a warning, or else an error that does not prevent the element from running.
    pub is_warning: bool,
    /// The location in a data file, `FILE:LINE`, that prefixes the text.
    pub data_location: Option<String>,
    /// The text.
    pub text: String,
}

/// What the elements of a router share, apart from its graph.
pub struct Resources {
    /// The environment.
    pub environment: Rc<dyn Environment>,
    /// Time as elements see it.
    pub clock: Clock,
    /// The packet pool.
    pub pool: Pool,
    /// Names defined by information elements.
    pub names: Names,
    /// The random sequence that all elements share, if they do.
    pub random: SharedRandom,
    /// The drop reasons that users' functions declared.
    pub user_reasons: UserReasons,
    /// The shard that the router is.
    pub shard: Shard,
    /// The driver.
    pub driver: Driver,
    /// Calls that wait until the current call has ended.
    pub deferred: Deferred,
    /// The remarks of elements during setup that were not reported yet.
    pub remarks: RefCell<Vec<SetupRemark>>,
    /// Whether a source takes several turns, after each of which others would have emptied the queues that it fills.
    pub is_paced: Cell<bool>,
    /// Whether the call that has just ended is one for which the class of the element has no method of its own; after the
    /// resolution of references, whether the element need not be initialised.
    pub is_needless: Cell<bool>,
    /// Whether an element needs a router that processes one packet at a time.
    pub needs_single_packets: Cell<bool>,
    /// The limits that elements set to the length of batches while the router runs.
    pub batch_limits: BatchLimits,
    /// The elements that forward the log.
    taps: RefCell<Vec<(usize, Weak<LogTap>)>>,
}

impl Resources {
    /// The resources of a new router.
    pub fn new(environment: Rc<dyn Environment>, pool: Pool, clock: Clock) -> Resources {
        Resources {
            environment,
            clock,
            pool,
            names: Names::new(),
            random: SharedRandom::default(),
            user_reasons: UserReasons::default(),
            shard: Shard::ONLY,
            driver: Driver::default(),
            deferred: Deferred::default(),
            remarks: RefCell::default(),
            is_paced: Cell::new(false),
            is_needless: Cell::new(false),
            needs_single_packets: Cell::new(false),
            batch_limits: BatchLimits::default(),
            taps: RefCell::default(),
        }
    }

    /// Wall-clock time; constant until the clock is refreshed.
    #[inline]
    pub fn now(&self) -> Timestamp {
        self.clock.now(self.environment.as_ref())
    }

    /// Monotonic time; constant until the clock is refreshed.
    #[inline]
    pub fn steady(&self) -> Timestamp {
        self.clock.steady(self.environment.as_ref())
    }

    /// Writes a line to the log.
    pub fn log(&self, text: &str) {
        self.environment.console(text);
        self.taps.borrow_mut().retain(|(element, tap)| {
            let tap = tap.upgrade();
            if tap.as_ref().is_some_and(|tap| tap.put(text)) {
                self.deferred.wake(*element);
            }
            tap.is_some()
        });
    }

    /// Starts a copy of the log for `element`. Its `woken` is called when there are lines.
    pub fn tap(&self, element: usize) -> Rc<LogTap> {
        let tap = Rc::new(LogTap::default());
        self.taps.borrow_mut().push((element, Rc::downgrade(&tap)));
        tap
    }
}
