//! Assigns the texts of a configuration to the arguments of an element.

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::class_info::{ArgumentInfo, ClassDocumentation, ClassInfo};
use crate::error::{ArgumentError, Message, SetupError};
use crate::text;

use super::setup::Setup;

/// The arguments of an element: a struct that `#[derive(Args)]` fills from text.
pub trait Args: Sized {
    /// The description of the element.
    const INFO: &'static ClassInfo;

    /// The documentation of the element.
    const DOCUMENTATION: &'static ClassDocumentation;

    /// Takes the arguments out of `arguments`; `None` if one is missing or invalid. `arguments` records the errors.
    fn take(arguments: &mut Arguments, setup: &Setup) -> Option<Self>;

    /// Parses all arguments, or returns all errors.
    fn parse(mut arguments: Arguments, setup: &mut Setup) -> Result<Self, SetupError> {
        let taken = Self::take(&mut arguments, setup);
        arguments.conclude(setup)?;
        // The errors are already recorded, so this one is empty.
        taken.ok_or_else(SetupError::default)
    }
}

/// Arguments that several classes share: a struct that `#[derive(ArgumentGroup)]` fills from text, and that argument
/// structs include as a field with `#[arg(flatten)]`.
pub trait ArgumentGroup: Sized {
    /// The argument descriptions, in order.
    const ARGUMENTS: &'static [ArgumentInfo];

    /// A one-sentence summary of each argument, in order.
    const SUMMARIES: &'static [&'static str];

    /// Takes the arguments out of `arguments`; `None` if one is missing or invalid. `arguments` records the errors.
    fn take(arguments: &mut Arguments, setup: &Setup) -> Option<Self>;
}

/// A type that can be parsed from an argument's text.
pub trait FromArgument: Sized {
    /// The type's name in the reference: `integer`, `IPv4 address`.
    const KIND: &'static str;

    /// Parses the text, which is trimmed but still has its quotes.
    fn from_argument(text: &str, setup: &Setup) -> Result<Self, ArgumentError>;
}

/// The argument texts of one element, taken as its fields ask for them.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    given: Vec<Given>,
    errors: SetupError,
    /// The first error in a value whose syntax is valid.
    later: Option<Message>,
    /// Notes for the setup.
    notes: Vec<String>,
}

#[derive(Clone, Debug)]
struct Given {
    text: String,
    /// Length in bytes of the word at its start that may be a keyword; 0 if there is none.
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

/// The zero values of the argument types, for a required argument with empty text: text, number, IPv4 and IPv6 address.
const ZEROS: [&str; 4] = ["", "0", "0.0.0.0", "0:0:0:0:0:0"];

impl Arguments {
    /// Splits an element's configuration into arguments.
    pub fn new(config: &str) -> Arguments {
        Arguments::of(text::split_arguments(config))
    }

    /// From argument texts.
    pub fn of(texts: Vec<String>) -> Arguments {
        Arguments { given: texts.into_iter().map(Given::new).collect(), ..Arguments::default() }
    }

    /// The text for an argument: the value after its keyword or, for a positional argument, the next text without a
    /// keyword. If there are several, the last wins. A required positional argument takes the next text even if it
    /// looks like a keyword. Nothing is taken by position after a positional argument that was given by its keyword.
    pub fn find(&mut self, info: &ArgumentInfo) -> Option<String> {
        let next = self.given.iter().position(|given| !given.used || given.keyword > 0);
        let mut found = None;
        for (index, given) in self.given.iter_mut().enumerate() {
            if !given.used && given.has_keyword(info.keyword) {
                given.used = true;
                found = Some((index, given.value().to_owned()));
                if !info.positional {
                    given.keyword = 0;
                }
            }
        }
        if info.positional
            && let Some((index, given)) = next.and_then(|next| Some((next, self.given.get_mut(next)?)))
            && !given.used
            && (given.keyword == 0 || (found.is_none() && info.required))
        {
            given.used = true;
            given.keyword = 0;
            if found.as_ref().is_none_or(|(keyword, _)| *keyword < index) {
                found = Some((index, given.text.clone()));
            }
        }
        let found = found.map(|(_, text)| text);
        if found.is_none() && info.required {
            self.errors.messages.push(Message::Missing { keyword: info.keyword });
        }
        found
    }

    /// Finds and parses all values of a keyword that may be repeated.
    pub fn values<T: FromArgument>(&mut self, info: &ArgumentInfo, setup: &Setup) -> Vec<T> {
        self.take(info, setup, |given| given.has_keyword(info.keyword).then(|| given.value()))
    }

    /// Parses all texts that no other argument has taken.
    pub fn rest<T: FromArgument>(&mut self, info: &ArgumentInfo, setup: &Setup) -> Vec<T> {
        self.take(info, setup, |given| Some(&given.text))
    }

    /// Takes and parses the values that `find` selects among the remaining texts.
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

    /// Finds and parses one argument; `None` if it is absent or invalid, in which case the error is recorded. As in
    /// Click, an optional argument may be empty, and a required one that is empty is the zero value of its type.
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

    /// Parses the text of an argument; an error is recorded under its keyword.
    pub fn parsed<T: FromArgument>(&mut self, info: &ArgumentInfo, text: &str, setup: &Setup) -> Option<T> {
        T::from_argument(text, setup).map_err(|problem| self.note(info, text, problem)).ok()
    }

    /// Records an error in the text of an argument.
    #[cold]
    fn note(&mut self, info: &ArgumentInfo, text: &str, problem: ArgumentError) {
        match problem {
            ArgumentError::Semantic(problem) => {
                self.later.get_or_insert(Message::in_argument(text, &problem, &problem));
            }
            ArgumentError::SemanticWithKeyword(problem) => {
                let problem = alloc::format!("{} {problem}", info.keyword);
                self.later.get_or_insert(Message::in_argument(text, &problem, &problem));
            }
            problem => self.errors.messages.push(Message::Argument {
                keyword: info.keyword.to_owned(),
                problem: problem.to_string(),
                value: Some(text.to_owned()),
            }),
        }
    }

    /// Passes the remarks on; fails if there are errors.
    fn conclude(mut self, setup: &mut Setup) -> Result<(), SetupError> {
        setup.notes.append(&mut self.notes);
        self.finish().into_result()
    }

    /// All recorded errors, including one for each argument that was not taken.
    pub fn finish(mut self) -> SetupError {
        let mut surplus = None;
        for given in self.given.iter().filter(|given| !given.used) {
            if given.keyword > 0 {
                let keyword = given.text.get(..given.keyword).unwrap_or("").to_owned();
                self.errors.messages.push(Message::Unknown { keyword });
            } else {
                surplus.get_or_insert_with(|| given.text.clone());
            }
        }
        if surplus.is_some() {
            self.errors.messages.push(Message::TooMany(surplus));
        }
        if self.errors.messages.is_empty() {
            self.errors.messages.extend(self.later);
        }
        self.errors
    }
}
