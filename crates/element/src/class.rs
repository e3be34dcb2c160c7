//! Element classes: the registry's entries, which describe a class without creating an element.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::arguments::{Args, Arguments, Setup};
use crate::contract::{DynElement, Element};
use crate::error::SetupError;
use crate::handler::{Handler, HandlerHead, HandlerInfo};
use reason::Reason;

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

/// A class that a registry can create elements of.
#[derive(Clone, Copy)]
pub struct Class {
    /// Its description.
    pub info: &'static ClassInfo,
    /// Whether `config` may be written while the element runs.
    pub live_reconfigure: bool,
    /// The prefix of its numbered handlers, and a summary of each.
    pub numbered: Option<(&'static str, &'static str)>,
    /// A handler by its index.
    handler: fn(usize) -> Option<&'static HandlerHead>,
    create: Create,
}

/// A placeholder for an unknown class, so that the rest of the configuration can be checked: any number and kind of
/// ports, no handlers. It cannot create elements.
pub static UNKNOWN_CLASS: Class = Class {
    info: &ClassInfo {
        name: "unknown",
        aliases: &[],
        group: "",
        ports: "-/-",
        processing: "a/a",
        flow: "x/y",
        order_insensitive: true,
        storage: false,
        task: true,
        notifies: Notifies::Nothing,
        phase: Phase::Normal,
        reads: &[],
        drops: &[],
        obsolete: "",
        arguments: &[],
    },
    live_reconfigure: false,
    numbered: None,
    handler: |_| None,
    create: |_, _| Err(SetupError::new("unknown element class")),
};

/// Registers the classes of a group: defines its `CLASSES`, and their `DOCUMENTATION` in the same order.
///
/// The two are separate so that the linker removes the documentation from a program that never refers to it.
#[macro_export]
macro_rules! classes {
    ($($element:ty),* $(,)?) => {
        /// The classes of this group, in the order of the reference.
        pub static CLASSES: &[$crate::Class] = &[$($crate::Class::of::<$element>()),*];

        /// The documentation of each of the classes, in the same order.
        pub static DOCUMENTATION: &[&$crate::ClassDocumentation] =
            &[$(<<$element as $crate::Element>::Args as $crate::Args>::DOCUMENTATION),*];
    };
}

type Create = fn(Arguments, &mut Setup) -> Result<Box<dyn DynElement>, SetupError>;

impl Class {
    /// The class of `E`.
    pub const fn of<E: Element>() -> Class {
        let numbered = match &E::NUMBERED {
            Some(numbered) => Some((numbered.prefix, numbered.summary)),
            None => None,
        };
        Class {
            info: <E::Args as Args>::INFO,
            live_reconfigure: E::LIVE_RECONFIGURE,
            numbered,
            handler: |index| E::HANDLERS.get(index).map(Handler::head),
            create: create::<E>,
        }
    }

    /// The class's own handlers that are not numbered; every element also has the standard ones.
    pub fn handlers(&self) -> Vec<HandlerInfo> {
        (0..).map_while(self.handler).map(HandlerHead::info).collect()
    }

    /// Parses the arguments and creates an element.
    pub fn create(&self, arguments: Arguments, setup: &mut Setup) -> Result<Box<dyn DynElement>, SetupError> {
        (self.create)(arguments, setup)
    }

    /// Whether this is [`UNKNOWN_CLASS`].
    pub fn is_unknown(&self) -> bool {
        core::ptr::eq(self.info, UNKNOWN_CLASS.info)
    }

    /// Whether `name` is its name or an alias.
    pub fn has_name(&self, name: &str) -> bool {
        self.info.name == name || self.info.aliases.contains(&name)
    }
}

impl core::fmt::Debug for Class {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Class({})", self.info.name)
    }
}

fn create<E: Element>(arguments: Arguments, setup: &mut Setup) -> Result<Box<dyn DynElement>, SetupError> {
    let obsolete = <E::Args as Args>::INFO.obsolete;
    if !obsolete.is_empty() {
        setup.warn(obsolete);
    }
    let args = E::Args::parse(arguments, setup)?;
    Ok(Box::new(E::new(args, setup)?))
}
