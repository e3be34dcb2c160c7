//! Descriptions of classes and their arguments: data without code.

use reason::Reason;

use crate::fate::Fate;
use crate::other_name::OtherName;

/// When an element is configured and initialised, relative to the others. The phases are those of Click's classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// First: elements that define names for others' arguments.
    Names,
    /// Elements that provide other information for others' arguments.
    Information,
    /// Devices that receive, or receive and send.
    Receiver,
    /// Devices that send.
    Sender,
    /// Elements that others refer to.
    Early,
    /// Most elements.
    Normal,
    /// Elements that refer to others.
    Late,
}

/// Which signals an element gives to its neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notifies {
    /// None.
    Nothing,
    /// Signals downstream whether there may be packets to pull.
    Empty,
    /// Signals upstream whether there may be room to push.
    Full,
    /// Both.
    EmptyAndFull,
}

/// How a class works if a configuration runs in several shards, each with a part of the flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShardMode {
    /// Not at all: its packets or its state could need those of another shard.
    Never,
    /// It treats each packet, or the packets of a flow, on their own.
    Independent,
    /// As `Independent`, and its counters are sums over the shards.
    Sum,
    /// Each shard gets a part of its rate, its capacity or its numbers.
    Divide,
    /// It works in the first shard only, and rests in the others: generators and control.
    First,
}

/// What the addresses by which packets are spread over shards mean to a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowUse {
    /// Nothing.
    Nothing,
    /// It keeps state by flow: both directions must be in one shard.
    Keeps,
    /// It needs all fragments of a packet in one shard.
    Fragments,
    /// Its packets leave with other addresses than those by which they were spread.
    Changes,
}

/// How a class works in several shards.
#[derive(Debug)]
pub struct Sharding {
    /// Whether and how it works there.
    pub mode: ShardMode,
    /// What the addresses of packets mean to it.
    pub flows: FlowUse,
    /// The read handlers whose numbers are added up. Others are the same in every shard, or else listed by shard.
    pub sums: &'static [&'static str],
    /// The read handlers whose lines are put one after the other.
    pub lists: &'static [&'static str],
}

/// The static description of a class that a running configuration needs.
#[derive(Debug)]
pub struct ClassInfo {
    /// Click's name.
    pub name: &'static str,
    /// Click's other names for it.
    pub aliases: &'static [&'static str],
    /// Its names in configurations for other programs, with other arguments.
    pub other_names: &'static [OtherName],
    /// The group in the reference and the folder of its file.
    pub group: &'static str,
    /// Inputs/outputs in Click's notation: `1/1`, `1/1-2`, `-/=`.
    pub ports: &'static str,
    /// The processing of each port in Click's notation (`a/ah`): push `h`, pull `l`, agnostic `a`.
    pub processing: &'static str,
    /// Which inputs reach which outputs, in Click's notation: `x/x`.
    pub flow: &'static str,
    /// Whether state and output are independent of the order in which packets arrive, so that batches may be regrouped.
    pub order_insensitive: bool,
    /// Whether packets of several inputs may arrive in one batch, by [`Element::push_mixed`](crate::Element::push_mixed).
    pub mixes_inputs: bool,
    /// Whether it stores pushed packets until they are pulled: a queue.
    pub storage: bool,
    /// Whether it has a task.
    pub task: bool,
    /// Whether its timers only keep its own state up to date, and cause no packets: a run need not wait for them.
    pub upkeep: bool,
    /// Whether it pulls another packet for each that it drops, so that a pull brings none only if one at its input does.
    pub pulls_again: bool,
    /// Whether what it makes or copies has the stamp of the packet, which then steps behind it
    /// ([`Packet::step_behind_copy`](packet::Packet::step_behind_copy)), or goes no further.
    pub keeps_place: bool,
    /// Whether order matters to it for some packets only, before which it puts back the rest of a batch
    /// ([`Context::put_back`](crate::Context::put_back)). It gets whole batches in loops, too.
    pub puts_back: bool,
    /// Whether it may write to the log for a packet that passes. One element may do so for each packet of a batch; where others may,
    /// too, the router processes one packet at a time.
    pub logs: bool,
    /// The signals that it gives.
    pub notifies: Notifies,
    /// When it is configured.
    pub phase: Phase,
    /// Classes whose elements it reads or changes while packets pass. The order between packets sent to it and packets
    /// sent to such an element is preserved.
    pub reads: &'static [&'static str],
    /// The reasons for which it drops packets. A drop for any other reason is counted as [`Reason::UNDECLARED`].
    pub drops: &'static [Reason],
    /// What it does with packets, apart from passing them on; in the order of [`Fate`].
    pub fates: &'static [Fate],
    /// How it works in several shards.
    pub shards: Sharding,
    /// The deprecation message; empty if the class is current.
    pub obsolete: &'static str,
    /// Its arguments, in order, grouped so that classes with common arguments share one list.
    pub arguments: &'static [&'static [ArgumentInfo]],
}

impl ClassInfo {
    /// Its arguments, in order.
    pub fn arguments(&self) -> impl Iterator<Item = &'static ArgumentInfo> {
        self.arguments.iter().copied().flatten()
    }
}

/// The documentation of a class. The reference, the manual and the example test are generated from it.
///
/// It is separate from [`ClassInfo`], and a registry does not refer to it, so that a program that never shows it does
/// not contain it.
#[derive(Debug)]
pub struct ClassDocumentation {
    /// The name of the class.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// The text after the summary, Markdown.
    pub description: &'static str,
    /// A runnable configuration.
    pub example: &'static str,
    /// Expected handler values at the end of the example, one `path = value` per line.
    pub expect: &'static str,
    /// Related classes.
    pub see: &'static [&'static str],
    /// A sentence for each argument, in the order and grouping of [`ClassInfo::arguments`].
    pub arguments: &'static [&'static [&'static str]],
}

impl ClassDocumentation {
    /// A sentence for each argument, in the order of [`ClassInfo::arguments()`].
    pub fn arguments(&self) -> impl Iterator<Item = &'static str> {
        self.arguments.iter().copied().flatten().copied()
    }
}

/// The static description of one argument.
#[derive(Debug)]
pub struct ArgumentInfo {
    /// The keyword.
    pub keyword: &'static str,
    /// Whether it may be given without its keyword, after the preceding positional arguments.
    pub positional: bool,
    /// Whether it must be given.
    pub required: bool,
    /// Whether it takes all remaining arguments, or may be given several times.
    pub repeated: bool,
    /// The type of its value: `integer`, `IPv4 address`.
    pub kind: &'static str,
    /// The default value as text; empty if there is none.
    pub default: &'static str,
    /// Whether it names a file that the element reads, which must be transferred with the configuration.
    pub input_file: bool,
    /// Whether its use causes a warning.
    pub deprecated: bool,
}
