//! Descriptions of classes and their arguments: data without code.

use reason::Reason;

use crate::fate::Fate;

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

/// The static description of a class that a running configuration needs.
#[derive(Debug)]
pub struct ClassInfo {
    /// Click's name.
    pub name: &'static str,
    /// Click's other names for it.
    pub aliases: &'static [&'static str],
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
    /// Whether it stores pushed packets until they are pulled: a queue.
    pub storage: bool,
    /// Whether it has a task.
    pub task: bool,
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
