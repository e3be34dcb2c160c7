//! What a router gives to the elements that it runs.

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

/// Where a handler is: an element's name and the handler's, resolved from the place of the one who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandlerTarget {
    /// The element's number; `None` for the router itself.
    pub element: Option<usize>,
    /// The handler's name.
    pub handler: String,
}

/// The router, as an element sees it through [`Context`](crate::Context). Elements are named by number.
pub trait Runtime {
    /// Wall-clock time; it stands still during one turn of a task, a timer or a handler.
    fn now(&self) -> Timestamp;
    /// Time that never jumps; it stands still likewise.
    fn steady(&self) -> Timestamp;
    /// The pool of all packets.
    fn pool(&self) -> &Pool;
    /// The outside world.
    fn environment(&self) -> &dyn Environment;
    /// Names that information elements have defined.
    fn names(&self) -> &Names;
    /// A random number below 2^31.
    fn random(&self, element: usize) -> u32;
    /// 64 random bits that are the element's alone, whoever else draws numbers.
    fn secret(&self, element: usize) -> u64;
    /// Starts every element's own random sequence anew from one seed.
    fn reseed(&self, seed: u64);
    /// Lets all elements draw from one sequence, which the same seed begins in Click.
    fn share_random(&self, seed: u32);
    /// Whether all elements draw from one sequence.
    fn shares_random(&self) -> bool;
    /// Connected inputs and outputs.
    fn ports(&self, element: usize) -> (usize, usize);
    /// Whether packets are pushed to the input.
    fn is_push_input(&self, element: usize, port: usize) -> bool;
    /// Whether the output pushes.
    fn is_push_output(&self, element: usize, port: usize) -> bool;
    /// Pulls at most `most` packets from an input to the end of `into`.
    fn pull(&self, element: usize, port: usize, most: usize, into: &mut Batch);
    /// Whether an input pulls right from queues.
    fn is_fed_by_storage(&self, element: usize, port: usize) -> bool;
    /// Delivers what an element has emitted.
    fn deliver(&self, element: usize, outputs: &mut Outputs);
    /// Lets pulls at an output go on to an input without a call of the element.
    fn relay(&self, element: usize, output: usize, input: Option<usize>);
    /// Declares a reason of a user's function for an element; `None` if that can't be.
    fn declare_reason(&self, element: usize, name: &str) -> Option<Reason>;
    /// Counts packets that the element has dropped, under a reason.
    fn count_drops(&self, element: usize, reason: Reason, count: u64);
    /// Puts the task on the run queue.
    fn schedule(&self, element: usize);
    /// Takes the task off the run queue.
    fn unschedule(&self, element: usize);
    /// Whether the task is on the run queue.
    fn is_scheduled(&self, element: usize) -> bool;
    /// The task's share of the turns.
    fn tickets(&self, element: usize) -> u32;
    /// Sets the task's share of the turns.
    fn set_tickets(&self, element: usize, tickets: u32);
    /// Assigns an element to a thread, which `home_thread` tells.
    fn assign(&self, element: usize, thread: usize);
    /// How often in a row the task would run if it went on: 1 unless it is alone.
    fn turns(&self, element: usize) -> usize;
    /// Sets a timer to a point of steady time.
    fn set_timer(&self, element: usize, timer: usize, at: Timestamp);
    /// Sets a timer to the end of a span that begins now.
    fn start_timer(&self, element: usize, timer: usize, at: Timestamp);
    /// Takes a timer back.
    fn clear_timer(&self, element: usize, timer: usize);
    /// When a timer comes, if it is set.
    fn timer(&self, element: usize, timer: usize) -> Option<Timestamp>;
    /// Tells listeners downstream (`Empty`) or upstream (`Full`) whether it is worth trying.
    fn set_signal(&self, element: usize, direction: Direction, active: bool);
    /// Looks for notifiers upstream of an input (`Empty`) or downstream of an output (`Full`), and listens to them.
    fn signal(&self, element: usize, port: usize, direction: Direction) -> Signal;
    /// Which notifiers such a signal has, in Click's notation.
    fn describe_signal(&self, element: usize, port: usize, direction: Direction) -> String;
    /// Asks to be told when the descriptor can be read or written; with neither, no more.
    fn watch(&self, element: usize, descriptor: Descriptor, read: bool, write: bool);
    /// Reads a handler; the path is resolved from the place of `from`.
    fn read_handler(&self, from: usize, path: &str, parameter: &str) -> Result<String, HandlerError>;
    /// Writes a handler now, unless its element is being called.
    fn write_handler(&self, from: usize, path: &str, value: &str) -> Result<(), HandlerError>;
    /// Writes a handler as soon as the present call is over.
    fn defer_write(&self, from: usize, path: String, value: String);
    /// The handler that a path names, seen from `from`.
    fn resolve(&self, from: usize, path: &str) -> Result<HandlerTarget, HandlerError>;
    /// The handlers of an element, or without one of the router.
    fn handlers(&self, element: Option<usize>) -> Vec<HandlerInfo>;
    /// Writes a new value of an argument into the text of the element's configuration, and changes nothing else. One
    /// that is known by its place alone has no keyword.
    fn note_argument(&self, element: usize, position: Option<usize>, keyword: &str, value: &str);
    /// The text of the element's configuration.
    fn configuration(&self, element: usize) -> String;
    /// Says that the element has a new configuration, and changes nothing else.
    fn note_configuration(&self, element: usize, config: &str);
    /// The name of an element; empty if there is none of that number.
    fn element_name(&self, element: usize) -> String;
    /// The name of an element's class.
    fn class_name(&self, element: usize) -> String;
    /// What stands above messages about an element: where it is declared, `what` is going on, its name and class.
    fn occasion(&self, element: usize, what: &str) -> String;
    /// How many elements there are.
    fn element_count(&self) -> usize;
    /// The element that a name means, seen from `from`.
    fn find(&self, from: usize, name: &str) -> Option<usize>;
    /// What an element exports, unless it is being called.
    fn export(&self, element: usize) -> Option<Rc<dyn Any>>;
    /// Elements reached from an output (or that reach an input) without passing storage, nearest first.
    fn neighbours(&self, element: usize, port: Option<usize>, downstream: bool) -> Vec<usize>;
    /// Takes so many from the driver's count; the driver stops at 0.
    fn stop(&self, count: i64);
    /// The driver's count.
    fn run_count(&self) -> i64;
    /// Sets the driver's count.
    fn set_run_count(&self, count: i64);
    /// Makes `element` the one that is asked when the driver would stop.
    fn attach_driver(&self, element: usize);
    /// Writes a line to the log.
    fn say(&self, text: &str);
    /// Tells of what is odd, or with `is_wrong` wrong, about an element that is being set up.
    fn remark(&self, element: usize, is_wrong: bool, place: Option<&str>, text: &str);
    /// What is said from now on, for `element`, which is told by `woken` when there is something.
    fn tap(&self, element: usize) -> Rc<LogTap>;
}
