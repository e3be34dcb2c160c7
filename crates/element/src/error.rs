//! Errors of arguments, element setup and handler calls.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

/// An error in an argument's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArgumentError {
    /// The text has the wrong syntax.
    Syntax,
    /// The number is out of range.
    OutOfRange(String),
    /// Anything else.
    Other(String),
    /// The syntax is valid but the value is not. Reported without the keyword, and only if the syntax of all arguments
    /// is valid.
    Semantic(String),
    /// Like `Semantic`, but the message starts with the keyword.
    SemanticWithKeyword(String),
}

impl ArgumentError {
    /// An error in a value whose syntax is valid, with the caller's text.
    pub fn semantic(text: impl fmt::Display) -> ArgumentError {
        ArgumentError::Semantic(text.to_string())
    }

    /// Whether this is a syntax error.
    pub(crate) fn is_syntactic(&self) -> bool {
        !matches!(self, ArgumentError::Semantic(_) | ArgumentError::SemanticWithKeyword(_))
    }

    /// An error with the caller's text.
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
            ArgumentError::Other(text)
            | ArgumentError::Semantic(text)
            | ArgumentError::SemanticWithKeyword(text) => f.write_str(text),
        }
    }
}

/// One error in an element's arguments or environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// An invalid value.
    Argument {
        /// The argument's keyword.
        keyword: String,
        /// The error in the value.
        problem: String,
        /// The value as written; `None` if it is not known.
        value: Option<String>,
    },
    /// An error in an argument that is not known by a keyword, such as a rule or a route.
    InArgument {
        /// The argument as written.
        argument: String,
        /// The error, with the number of the argument.
        text: String,
        /// The error alone, where the argument is shown.
        problem: String,
        /// A word of the argument that has no meaning there, and the words that have one.
        unknown: Option<(String, Vec<&'static str>)>,
    },
    /// A required argument is absent.
    Missing {
        /// The argument's keyword.
        keyword: &'static str,
    },
    /// The class has no such keyword.
    Unknown {
        /// The keyword as written.
        keyword: String,
    },
    /// More positional arguments than the class takes: the first of them, if it is known.
    TooMany(Option<String>),
    /// An error in a data file that the element reads.
    InFile {
        /// The file, optionally with a line.
        location: String,
        /// The error.
        text: String,
        /// Whether the element is named as `NAME :: CLASS(location)`.
        is_named: bool,
    },
    /// An error that depends on the number of connected ports.
    Ports(String),
    /// Any other error: text without the element's name, which the caller adds.
    Other(String),
}

impl Message {
    /// A message about an argument that is written as `argument`: `text` with its number, `problem` without.
    pub fn in_argument(
        argument: impl fmt::Display,
        text: impl fmt::Display,
        problem: impl fmt::Display,
    ) -> Message {
        let (argument, text, problem) = (argument.to_string(), text.to_string(), problem.to_string());
        Message::InArgument { argument, text, problem, unknown: None }
    }

    /// The text in the configuration that the message is about, if it is known.
    pub fn subject(&self) -> Option<&str> {
        match self {
            Message::Argument { value, .. } => value.as_deref(),
            Message::InArgument { argument, .. } | Message::TooMany(Some(argument)) => Some(argument),
            Message::Unknown { keyword } => Some(keyword),
            _ => None,
        }
    }

    /// Whether the error may vanish once other errors of the configuration are mended: it depends on connections, or on a
    /// variable that is not replaced.
    pub fn may_follow(&self) -> bool {
        matches!(self, Message::Ports(_)) || self.subject().is_some_and(|subject| subject.contains('$'))
    }

    /// The message for an output that shows the subject.
    pub fn beside_subject(&self) -> String {
        match self {
            Message::InArgument { problem, .. } => problem.clone(),
            other => other.to_string(),
        }
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Message::Argument { keyword, problem, .. } => write!(f, "{keyword}: {problem}"),
            Message::InArgument { text, .. } => f.write_str(text),
            Message::Missing { keyword } => write!(f, "{keyword}: required argument missing"),
            Message::Unknown { keyword } => write!(f, "{keyword}: unknown argument"),
            Message::TooMany(_) => f.write_str("too many arguments"),
            Message::InFile { location, text, .. } => write!(f, "{location}: {text}"),
            Message::Ports(text) | Message::Other(text) => f.write_str(text),
        }
    }
}

/// Why an element can't be created or started: one or more messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SetupError {
    /// The messages, in the order of the arguments.
    pub messages: Vec<Message>,
}

impl SetupError {
    /// One message.
    pub fn new(text: impl fmt::Display) -> SetupError {
        SetupError { messages: alloc::vec![Message::Other(text.to_string())] }
    }

    /// One message that depends on the number of connected ports.
    pub fn ports(text: impl fmt::Display) -> SetupError {
        Message::Ports(text.to_string()).into()
    }

    /// One message about the value of an argument.
    pub fn argument(keyword: impl fmt::Display, problem: impl fmt::Display) -> SetupError {
        SetupError {
            messages: alloc::vec![Message::Argument {
                keyword: keyword.to_string(),
                problem: problem.to_string(),
                value: None,
            }],
        }
    }

    /// One message about an argument that is written as `argument`: `text` with its number, `problem` without.
    pub fn in_argument(
        argument: impl fmt::Display,
        text: impl fmt::Display,
        problem: impl fmt::Display,
    ) -> SetupError {
        Message::in_argument(argument, text, problem).into()
    }

    /// One message about a location in a data file, `FILE:LINE`.
    pub fn at_location(location: impl fmt::Display, text: impl fmt::Display) -> SetupError {
        Message::InFile { location: location.to_string(), text: text.to_string(), is_named: false }.into()
    }

    /// One message about a data file; it introduces the element as `NAME :: CLASS(FILE)`.
    pub fn in_file(file: impl fmt::Display, text: impl fmt::Display) -> SetupError {
        Message::InFile { location: file.to_string(), text: text.to_string(), is_named: true }.into()
    }

    /// Adds the messages of `other`.
    pub fn merge(&mut self, other: SetupError) {
        self.messages.extend(other.messages);
    }

    /// `Ok` if there is no message.
    pub fn into_result(self) -> Result<(), SetupError> {
        if self.messages.is_empty() { Ok(()) } else { Err(self) }
    }
}

impl From<Message> for SetupError {
    fn from(message: Message) -> SetupError {
        SetupError { messages: alloc::vec![message] }
    }
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, message) in self.messages.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{message}")?;
        }
        Ok(())
    }
}

impl core::error::Error for SetupError {}

/// Why a handler call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandlerError {
    /// There is no such element.
    NoElement(String),
    /// The element has no such handler.
    NoHandler(String),
    /// The handler can't be read, or can't be written.
    WrongKind {
        /// Its path.
        path: String,
        /// Whether a read was tried.
        read: bool,
    },
    /// The handler gives one value and takes no parameter.
    NoParameter(String),
    /// The element is already being called.
    Busy(String),
    /// The value can't be parsed. Callers get it as `Rejected`.
    Value(ArgumentError),
    /// The value is invalid; the messages say why.
    Rejected(String),
    /// Like `Rejected`, with an error number for scripts other than [`HandlerError::INVALID`].
    RejectedWithCode {
        /// The messages.
        text: String,
        /// The error number.
        code: i32,
    },
    /// The write took effect, with warnings.
    WrittenWithWarnings(String),
    /// The read returned a value, with errors.
    ReadWithErrors {
        /// The value.
        value: String,
        /// The messages.
        problems: String,
    },
}

impl HandlerError {
    /// The default error number that scripts see if a handler rejects a value: Linux's number for an invalid argument.
    pub const INVALID: i32 = -22;
    /// The error number of a handler that gives no reason.
    pub const UNSPECIFIED: i32 = -1;
    /// The error number of a handler that found no object of that name.
    pub const NOT_FOUND: i32 = -2;
    /// The error number of a handler whose object already exists.
    pub const EXISTS: i32 = -17;

    /// The handler rejects the value.
    pub fn new(text: impl fmt::Display) -> HandlerError {
        HandlerError::Rejected(text.to_string())
    }

    /// The handler rejects the value, with its own error number for scripts.
    pub fn with_code(code: i32, text: impl fmt::Display) -> HandlerError {
        HandlerError::RejectedWithCode { text: text.to_string(), code }
    }

    /// The message that scripts get for a read or a write. It does not distinguish a missing handler from one of the
    /// other kind.
    pub fn of_call(&self, read: bool) -> String {
        match self {
            HandlerError::NoHandler(path) | HandlerError::WrongKind { path, .. } => {
                alloc::format!("no ‘{path}’ {} handler", if read { "read" } else { "write" })
            }
            other => other.to_string(),
        }
    }
}

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HandlerError::NoElement(name) => write!(f, "no element named ‘{name}’"),
            HandlerError::NoHandler(path) => write!(f, "no ‘{path}’ handler"),
            HandlerError::WrongKind { path, read: true } => write!(f, "‘{path}’ is a write handler"),
            HandlerError::WrongKind { path, read: false } => write!(f, "‘{path}’ is a read handler"),
            HandlerError::NoParameter(path) => {
                write!(f, "read handler ‘{path}’ does not take parameters")
            }
            HandlerError::Busy(path) => write!(f, "‘{path}’ is busy"),
            HandlerError::Value(problem) => problem.fmt(f),
            HandlerError::Rejected(text)
            | HandlerError::RejectedWithCode { text, .. }
            | HandlerError::WrittenWithWarnings(text)
            | HandlerError::ReadWithErrors { problems: text, .. } => f.write_str(text),
        }
    }
}

impl core::error::Error for HandlerError {}

impl From<SetupError> for HandlerError {
    fn from(error: SetupError) -> HandlerError {
        HandlerError::with_code(HandlerError::UNSPECIFIED, error)
    }
}
