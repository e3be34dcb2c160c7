//! Which text belongs to which argument.

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use crate::class::{ArgumentInfo, ClassDocumentation, ClassInfo};
use crate::error::{Message, SetupError};
use crate::text;

use super::setup::Setup;

/// The arguments of an element: a struct that `#[derive(Args)]` fills in from text.
pub trait Args: Sized {
    /// The description of the element that takes them.
    const INFO: &'static ClassInfo;

    /// The documentation of that element.
    const DOCUMENTATION: &'static ClassDocumentation;

    /// Takes them out of those that were given; `None` if one is missing or wrong, which is noted there.
    fn take(arguments: &mut Arguments, setup: &Setup) -> Option<Self>;

    /// Parses all of them, or says everything that is wrong.
    fn parse(mut arguments: Arguments, setup: &mut Setup) -> Result<Self, SetupError> {
        let taken = Self::take(&mut arguments, setup);
        setup.notes.append(&mut arguments.notes);
        arguments.finish().into_result()?;
        // Nothing was taken where something is wrong, which has been said.
        taken.ok_or_else(SetupError::default)
    }
}

/// Arguments that several classes have: a struct that `#[derive(ArgumentGroup)]` fills in from text, and that argument
/// structs have as a field with `#[arg(flatten)]`.
pub trait ArgumentGroup: Sized {
    /// Their descriptions, in order.
    const ARGUMENTS: &'static [ArgumentInfo];

    /// A sentence for each, in order.
    const SUMMARIES: &'static [&'static str];

    /// Takes them out of those that were given; `None` if one is missing or wrong, which is noted there.
    fn take(arguments: &mut Arguments, setup: &Setup) -> Option<Self>;
}

/// A type that an argument's text stands for.
pub trait FromArgument: Sized {
    /// What it is, for the reference: `integer`, `IPv4 address`.
    const KIND: &'static str;

    /// Parses it: text without outer space, with its quotes.
    fn from_argument(text: &str, setup: &Setup) -> Result<Self, ArgumentError>;
}

/// What is wrong with the text of an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArgumentError {
    /// It does not have the form.
    Syntax,
    /// It is a number beyond the bound.
    OutOfRange(String),
    /// Anything else.
    Other(String),
    /// The form is right and the value is not: said without the keyword, and only if the form of all arguments is
    /// right.
    Later(String),
    /// The same, said with the keyword as its subject.
    LaterOf(String),
}

impl ArgumentError {
    /// Of the value alone, in the caller's words.
    pub fn later(text: impl fmt::Display) -> ArgumentError {
        ArgumentError::Later(text.to_string())
    }

    /// Whether the text does not have the form.
    pub(crate) fn is_form(&self) -> bool {
        !matches!(self, ArgumentError::Later(_) | ArgumentError::LaterOf(_))
    }

    /// In the caller's words.
    pub fn new(text: impl fmt::Display) -> ArgumentError {
        ArgumentError::Other(text.to_string())
    }
}

impl core::error::Error for ArgumentError {}

impl fmt::Display for ArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArgumentError::Syntax => f.write_str("parse error"),
            ArgumentError::OutOfRange(bound) => write!(f, "out of range, bound {bound}"),
            ArgumentError::Other(text) | ArgumentError::Later(text) | ArgumentError::LaterOf(text) => {
                f.write_str(text)
            }
        }
    }
}

/// The argument texts of one element, handed out as its fields ask for them.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    given: Vec<Given>,
    errors: SetupError,
    /// The first thing that is wrong with a value whose form is right.
    later: Option<String>,
    /// Remarks for the setup.
    notes: Vec<String>,
}

#[derive(Clone, Debug)]
struct Given {
    text: String,
    /// Bytes of what may be a keyword at its start.
    keyword: usize,
    used: bool,
}

impl Given {
    fn new(text: String) -> Given {
        let mut bytes = text.bytes();
        let mut keyword = 0;
        if bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_') {
            let end =
                1 + bytes.take_while(|byte| byte.is_ascii_alphanumeric() || b"_.?:".contains(byte)).count();
            if text.as_bytes().get(end).is_some_and(u8::is_ascii_whitespace) {
                keyword = end;
            }
        }
        Given { text, keyword, used: false }
    }

    fn has_keyword(&self, keyword: &str) -> bool {
        self.keyword > 0 && self.text.get(..self.keyword) == Some(keyword)
    }

    fn value(&self) -> &str {
        self.text.get(self.keyword..).unwrap_or("").trim_start()
    }
}

/// Texts of what an argument is that stays unset: text, a number, addresses.
const ZEROS: [&str; 4] = ["", "0", "0.0.0.0", "0:0:0:0:0:0"];

impl Arguments {
    /// Of the configuration of an element.
    pub fn new(config: &str) -> Arguments {
        Arguments::of(text::split_arguments(config))
    }

    /// Of argument texts.
    pub fn of(texts: Vec<String>) -> Arguments {
        Arguments { given: texts.into_iter().map(Given::new).collect(), ..Arguments::default() }
    }

    /// The text for an argument: what stands behind its keyword, or if it has a position the next one without a
    /// keyword; of several the last. A required one takes the next even if that looks like a keyword. Behind an
    /// argument that has a position and was given by its keyword, nothing is taken by position.
    pub fn find(&mut self, info: &ArgumentInfo) -> Option<String> {
        let next = self.given.iter().position(|given| !given.used || given.keyword > 0);
        let mut found = None;
        for (place, given) in self.given.iter_mut().enumerate() {
            if !given.used && given.has_keyword(info.keyword) {
                given.used = true;
                found = Some((place, given.value().to_owned()));
                if !info.positional {
                    given.keyword = 0;
                }
            }
        }
        if info.positional
            && let Some((place, given)) = next.and_then(|next| Some((next, self.given.get_mut(next)?)))
            && !given.used
            && (given.keyword == 0 || (found.is_none() && info.required))
        {
            given.used = true;
            given.keyword = 0;
            if found.as_ref().is_none_or(|(keyword, _)| *keyword < place) {
                found = Some((place, given.text.clone()));
            }
        }
        let found = found.map(|(_, text)| text);
        if found.is_none() && info.required {
            self.errors.messages.push(Message::Missing { keyword: info.keyword });
        }
        found
    }

    /// Finds and parses all texts given for a keyword that may be repeated.
    pub fn values<T: FromArgument>(&mut self, info: &ArgumentInfo, setup: &Setup) -> Vec<T> {
        self.take(info, setup, |given| given.has_keyword(info.keyword).then(|| given.value()))
    }

    /// Parses all texts that nobody has asked for.
    pub fn rest<T: FromArgument>(&mut self, info: &ArgumentInfo, setup: &Setup) -> Vec<T> {
        self.take(info, setup, |given| Some(&given.text))
    }

    /// Takes and parses what a function finds in texts that nobody has asked for.
    fn take<T: FromArgument>(
        &mut self,
        info: &ArgumentInfo,
        setup: &Setup,
        find: impl Fn(&Given) -> Option<&str>,
    ) -> Vec<T> {
        let mut texts = Vec::new();
        for given in self.given.iter_mut().filter(|given| !given.used) {
            if let Some(text) = find(given) {
                texts.push(text.to_owned());
                given.used = true;
            }
        }
        texts.iter().filter_map(|text| self.parsed(info, text, setup)).collect()
    }

    /// Finds and parses one argument; `None` if it is absent or wrong, which is noted. One that need not be given may
    /// be empty instead, and one that must stays unset if it is empty, as in Click: it is a zero of its kind.
    pub fn value<T: FromArgument>(&mut self, info: &ArgumentInfo, setup: &Setup) -> Option<T> {
        let text = self.find(info)?;
        if info.deprecated {
            self.notes.push(alloc::format!("{}: warning: argument deprecated", info.keyword));
        }
        if text.is_empty() && !info.required {
            return None;
        }
        if text.is_empty()
            && let Some(zero) = ZEROS.iter().find_map(|zero| T::from_argument(zero, setup).ok())
        {
            return Some(zero);
        }
        self.parsed(info, &text, setup)
    }

    /// Finds and parses one argument, or parses its default.
    pub fn value_or_default<T: FromArgument>(&mut self, info: &ArgumentInfo, setup: &Setup) -> Option<T> {
        let given = self.find(info).filter(|text| !text.is_empty());
        let text = given.unwrap_or_else(|| info.default.to_owned());
        self.parsed(info, &text, setup)
    }

    /// Parses the text of an argument; what is wrong is noted under its keyword.
    pub fn parsed<T: FromArgument>(&mut self, info: &ArgumentInfo, text: &str, setup: &Setup) -> Option<T> {
        match T::from_argument(text, setup) {
            Ok(value) => Some(value),
            Err(ArgumentError::Later(text)) => {
                self.later.get_or_insert(text);
                None
            }
            Err(ArgumentError::LaterOf(text)) => {
                self.later.get_or_insert(alloc::format!("{} {text}", info.keyword));
                None
            }
            Err(problem) => {
                self.errors.messages.push(Message::Argument {
                    keyword: info.keyword.to_owned(),
                    problem: problem.to_string(),
                });
                None
            }
        }
    }

    /// Everything that is wrong, arguments that nobody asked for included.
    pub fn finish(mut self) -> SetupError {
        let mut too_many = false;
        for given in self.given.iter().filter(|given| !given.used) {
            if given.keyword > 0 {
                let keyword = given.text.get(..given.keyword).unwrap_or("").to_owned();
                self.errors.messages.push(Message::Unknown { keyword });
            } else {
                too_many = true;
            }
        }
        if too_many {
            self.errors.messages.push(Message::TooMany);
        }
        if self.errors.messages.is_empty() {
            self.errors.messages.extend(self.later.map(Message::Other));
        }
        self.errors
    }
}
