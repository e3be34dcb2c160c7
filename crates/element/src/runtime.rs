//! The services that a router provides to its elements.

use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::any::Any;

use packet::{Batch, Pool, Timestamp};
use reason::Reason;

use crate::environment::{Descriptor, Environment};
use crate::error::HandlerError;
use crate::handler::HandlerInfo;
use crate::names::Names;
use crate::outputs::Outputs;
use crate::signal::{Direction, Signal};
use crate::tap::LogTap;

/// A handler's location: element and handler name, resolved relative to the requester.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandlerTarget {
    /// The element's index; `None` for the router itself.
    pub element: Option<usize>,
    /// The handler's name.
    pub handler: String,
}

/// The router, as an element sees it through [`Context`](crate::Context). Elements are identified by index.
pub trait Runtime {
    /// Wall-clock time; constant during one run of a task, a timer or a handler.
    fn now(&self) -> Timestamp;
    /// Monotonic time; constant during one run of a task, a timer or a handler.
    fn steady(&self) -> Timestamp;
    /// The packet pool.
    fn pool(&self) -> &Pool;
    /// The environment.
    fn environment(&self) -> &dyn Environment;
    /// Names defined by information elements.
    fn names(&self) -> &Names;
    /// A random number below 2^31.
    fn random(&self, element: usize) -> u32;
    /// 64 random bits private to the element, independent of other draws.
    fn hash_seed(&self, element: usize) -> u64;
    /// Restarts every element's own random sequence from one seed.
    fn reseed(&self, seed: u64);
    /// Makes all elements share one random sequence: the one that Click starts from this seed.
    fn share_random(&self, seed: u32);
    /// Whether all elements share one random sequence.
    fn shares_random(&self) -> bool;
    /// Numbers of connected inputs and outputs.
    fn ports(&self, element: usize) -> (usize, usize);
    /// Whether packets are pushed to the input.
    fn is_push_input(&self, element: usize, port: usize) -> bool;
    /// Whether the output pushes.
    fn is_push_output(&self, element: usize, port: usize) -> bool;
    /// Pulls at most `most` packets from an input and appends them to `into`.
    fn pull(&self, element: usize, port: usize, most: usize, into: &mut Batch);
    /// Whether an input pulls directly from queues.
    fn is_fed_by_storage(&self, element: usize, port: usize) -> bool;
    /// Delivers the batches that an element has emitted.
    fn deliver(&self, element: usize, outputs: &mut Outputs);
    /// Forwards pulls at an output to an input without calling the element.
    fn forward_pulls(&self, element: usize, output: usize, input: Option<usize>);
    /// Declares a drop reason for a user's function of an element; `None` if the name is invalid or there are too many.
    fn declare_reason(&self, element: usize, name: &str) -> Option<Reason>;
    /// Counts packets that the element dropped, under a reason.
    fn count_drops(&self, element: usize, reason: Reason, count: u64);
    /// Puts the task on the run queue.
    fn schedule(&self, element: usize);
    /// Takes the task off the run queue.
    fn unschedule(&self, element: usize);
    /// Whether the task is on the run queue.
    fn is_scheduled(&self, element: usize) -> bool;
    /// The task's tickets: its share of the CPU.
    fn tickets(&self, element: usize) -> u32;
    /// Sets the task's tickets.
    fn set_tickets(&self, element: usize, tickets: u32);
    /// Assigns an element to a thread, which the handler `home_thread` shows.
    fn assign(&self, element: usize, thread: usize);
    /// How many consecutive turns the task may take at once: 1 unless it is the only task.
    fn take_turns(&self, element: usize) -> usize;
    /// Sets a timer to a point of steady time.
    fn set_timer(&self, element: usize, timer: usize, at: Timestamp);
    /// Sets a timer to expire at `at`, the end of a span that begins now.
    fn start_timer(&self, element: usize, timer: usize, at: Timestamp);
    /// Cancels a timer.
    fn clear_timer(&self, element: usize, timer: usize);
    /// When a timer expires, if it is set.
    fn timer(&self, element: usize, timer: usize) -> Option<Timestamp>;
    /// Sets whether listeners downstream (`Empty`) or upstream (`Full`) should try.
    fn set_signal(&self, element: usize, direction: Direction, active: bool);
    /// Finds the notifiers upstream of an input (`Empty`) or downstream of an output (`Full`) and listens to them.
    fn signal(&self, element: usize, port: usize, direction: Direction) -> Signal;
    /// The notifiers of such a signal, in Click's notation.
    fn describe_signal(&self, element: usize, port: usize, direction: Direction) -> String;
    /// Requests a call when the descriptor can be read or written; with neither, cancels the request.
    fn watch(&self, element: usize, descriptor: Descriptor, read: bool, write: bool);
    /// Reads a handler; the path is resolved relative to `from`.
    fn read_handler(&self, from: usize, path: &str, parameter: &str) -> Result<String, HandlerError>;
    /// Writes a handler at once; fails if its element is being called.
    fn write_handler(&self, from: usize, path: &str, value: &str) -> Result<(), HandlerError>;
    /// Writes a handler once the current call has ended.
    fn defer_write(&self, from: usize, path: String, value: String);
    /// Resolves a handler path relative to `from`.
    fn resolve(&self, from: usize, path: &str) -> Result<HandlerTarget, HandlerError>;
    /// The handlers of an element, or with `None` of the router.
    fn handlers(&self, element: Option<usize>) -> Vec<HandlerInfo>;
    /// Records a new value of an argument in the element's configuration text, without side effects. A purely
    /// positional argument has no keyword.
    fn record_argument(&self, element: usize, position: Option<usize>, keyword: &str, value: &str);
    /// The configuration text of an element.
    fn configuration(&self, element: usize) -> String;
    /// Records a new configuration of the element, without side effects.
    fn record_configuration(&self, element: usize, config: &str);
    /// The name of an element; empty if the index is unknown.
    fn element_name(&self, element: usize) -> String;
    /// The class name of an element.
    fn class_name(&self, element: usize) -> String;
    /// The heading of messages about an element: its location, the operation `what`, its name and class.
    fn message_heading(&self, element: usize, what: &str) -> String;
    /// The number of elements.
    fn element_count(&self) -> usize;
    /// Looks up an element by name, as seen from `from`.
    fn find(&self, from: usize, name: &str) -> Option<usize>;
    /// The object that an element exports, unless it is being called.
    fn export(&self, element: usize) -> Option<Rc<dyn Any>>;
    /// Elements reachable from an output (or that reach an input) without passing storage, nearest first.
    fn neighbours(&self, element: usize, port: Option<usize>, downstream: bool) -> Vec<usize>;
    /// Subtracts from the driver's count; at 0 the driver stops.
    fn stop(&self, count: i64);
    /// The driver's count.
    fn run_count(&self) -> i64;
    /// Sets the driver's count.
    fn set_run_count(&self, count: i64);
    /// Makes `element` the one that is asked before the driver stops.
    fn attach_driver(&self, element: usize);
    /// Writes a line to the log.
    fn log(&self, text: &str);
    /// Reports a warning, or with `is_wrong` an error, about an element during setup.
    fn remark(&self, element: usize, is_wrong: bool, location: Option<&str>, text: &str);
    /// Starts a copy of the log for `element`. Its `woken` is called when there are lines.
    fn tap(&self, element: usize) -> Rc<LogTap>;
}
