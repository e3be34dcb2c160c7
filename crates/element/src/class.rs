//! Element classes: the registry's entries, which describe a class without creating an element.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::arguments::{Args, Arguments, Setup};
use crate::class_info::{ClassInfo, FlowUse, Notifies, Phase, ShardMode, Sharding};
use crate::contract::{DynElement, Element};
use crate::error::SetupError;
use crate::handler::{Handler, HandlerHead};
use crate::handler_info::HandlerInfo;
use crate::other_name::OtherName;

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
    begin: Option<Begin>,
}

/// A placeholder for an unknown class, so that the rest of the configuration can be checked: any number and kind of
/// ports, no handlers. It cannot create elements.
pub static UNKNOWN_CLASS: Class = Class {
    info: &ClassInfo {
        name: "unknown",
        aliases: &[],
        other_names: &[],
        group: "",
        ports: "-/-",
        processing: "a/a",
        flow: "x/y",
        order_insensitive: true,
        mixes_inputs: false,
        storage: false,
        task: true,
        upkeep: false,
        pulls_again: false,
        keeps_place: false,
        puts_back: false,
        logs: false,
        notifies: Notifies::Nothing,
        phase: Phase::Normal,
        reads: &[],
        drops: &[],
        fates: &[],
        shards: Sharding { mode: ShardMode::Never, flows: FlowUse::Nothing, sums: &[], lists: &[] },
        obsolete: "",
        arguments: &[],
    },
    live_reconfigure: false,
    numbered: None,
    handler: |_| None,
    create: |_, _| Err(SetupError::new("unknown element class")),
    begin: None,
};

/// Registers the classes of a group: defines its `CLASSES`, and their `DOCUMENTATION` in the same order.
///
/// The two are separate so that the linker removes the documentation from a program that never refers to it.
#[macro_export]
macro_rules! classes {
    ($($element:ty),* $(,)?) => {
        /// The classes of this group, in the order of the reference.
        // An array: a static that refers to it refers to these classes. A slice would be copied, and with it the code of
        // the classes, into each crate whose statics name it.
        pub static CLASSES: [$crate::Class; [$(stringify!($element)),*].len()] =
            [$($crate::Class::of::<$element>()),*];

        /// The documentation of each of the classes, in the same order.
        pub static DOCUMENTATION: [&$crate::ClassDocumentation; [$(stringify!($element)),*].len()] =
            [$(<<$element as $crate::Element>::Args as $crate::Args>::DOCUMENTATION),*];
    };
}

type Begin = fn(&str) -> Option<Box<dyn DynElement>>;
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
            begin: if E::BEGIN.is_some() { Some(begin::<E>) } else { None },
        }
    }

    /// The class's own handlers that are not numbered; every element also has the standard ones.
    pub fn handlers(&self) -> Vec<HandlerInfo> {
        (0..).map_while(self.handler).map(HandlerHead::info).collect()
    }

    /// Whether it has a handler of this name that is not numbered. This makes no list.
    pub fn has_handler(&self, name: &str) -> bool {
        (0..).map_while(self.handler).any(|head| head.name() == name)
    }

    /// Parses the arguments and creates an element.
    pub fn create(&self, arguments: Arguments, setup: &mut Setup) -> Result<Box<dyn DynElement>, SetupError> {
        (self.create)(arguments, setup)
    }

    /// Begins to create an element in steps, if its creation takes long; see [`Element::BEGIN`].
    pub fn begin(&self, configuration: &str) -> Option<Box<dyn DynElement>> {
        self.begin?(configuration)
    }

    /// Whether this is [`UNKNOWN_CLASS`].
    pub fn is_unknown(&self) -> bool {
        core::ptr::eq(self.info, UNKNOWN_CLASS.info)
    }

    /// Whether `name` is its name, an alias, or its name in configurations for other programs.
    pub fn has_name(&self, name: &str) -> bool {
        self.info.name == name || self.info.aliases.contains(&name) || self.other_name(name).is_some()
    }

    /// What arguments under the name `name` mean; `None` if they are those of the class.
    pub fn other_name(&self, name: &str) -> Option<&'static OtherName> {
        self.info.other_names.iter().find(|other| other.name == name)
    }
}

impl core::fmt::Debug for Class {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Class({})", self.info.name)
    }
}

fn begin<E: Element>(configuration: &str) -> Option<Box<dyn DynElement>> {
    Some(Box::new(E::BEGIN?(configuration)?))
}

fn create<E: Element>(arguments: Arguments, setup: &mut Setup) -> Result<Box<dyn DynElement>, SetupError> {
    let obsolete = <E::Args as Args>::INFO.obsolete;
    if !obsolete.is_empty() {
        setup.warn(obsolete);
    }
    let args = E::Args::parse(arguments, setup)?;
    Ok(Box::new(E::new(args, setup)?))
}
