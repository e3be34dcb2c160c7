//! Why an element can't be set up, and why a handler call failed.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use crate::arguments::ArgumentError;

/// One thing that is wrong with an element's arguments or surroundings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// The value of an argument.
    Argument {
        /// The keyword that the user knows it by.
        keyword: String,
        /// What is wrong with the value.
        problem: String,
    },
    /// A required argument is absent.
    Missing {
        /// Its keyword.
        keyword: &'static str,
    },
    /// A keyword that the class does not have.
    Unknown {
        /// As the user wrote it.
        keyword: String,
    },
    /// More positional arguments than the class takes.
    TooMany,
    /// Something about a file of data that the element reads.
    Placed {
        /// The file, perhaps with a line.
        place: String,
        /// What is wrong there.
        text: String,
        /// Whether the element is told of as that of `place`.
        is_named: bool,
    },
    /// Anything else: a fragment without the element's name, which the caller adds.
    Other(String),
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Message::Argument { keyword, problem } => write!(f, "{keyword}: {problem}"),
            Message::Missing { keyword } => write!(f, "{keyword}: required argument missing"),
            Message::Unknown { keyword } => write!(f, "{keyword}: unknown argument"),
            Message::TooMany => f.write_str("too many arguments"),
            Message::Placed { place, text, .. } => write!(f, "{place}: {text}"),
            Message::Other(text) => f.write_str(text),
        }
    }
}

/// Why an element can't be made or started: one or more messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SetupError {
    /// What is wrong, in the order of the arguments.
    pub messages: Vec<Message>,
}

impl SetupError {
    /// One message.
    pub fn new(text: impl fmt::Display) -> SetupError {
        SetupError { messages: alloc::vec![Message::Other(text.to_string())] }
    }

    /// One message about the value of an argument.
    pub fn argument(keyword: impl fmt::Display, problem: impl fmt::Display) -> SetupError {
        SetupError {
            messages: alloc::vec![Message::Argument {
                keyword: keyword.to_string(),
                problem: problem.to_string()
            }],
        }
    }

    /// One message about a place in a file of data, `FILE:LINE`.
    pub fn placed(place: impl fmt::Display, text: impl fmt::Display) -> SetupError {
        Message::Placed { place: place.to_string(), text: text.to_string(), is_named: false }.into()
    }

    /// One message about a file of data, of which the element is told as `NAME :: CLASS(FILE)`.
    pub fn of_file(file: impl fmt::Display, text: impl fmt::Display) -> SetupError {
        Message::Placed { place: file.to_string(), text: text.to_string(), is_named: true }.into()
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
    /// The handler can't be read, or not written.
    Wrong {
        /// Its path.
        path: String,
        /// Whether a read was tried.
        read: bool,
    },
    /// The handler gives one value and takes no parameter.
    NoParameter(String),
    /// The element is in the middle of a call of its own.
    Busy(String),
    /// The value does not stand for what the handler takes. Callers get it as `Rejected`.
    Value(ArgumentError),
    /// The value is not one that the handler takes; the messages say why.
    Rejected(String),
    /// The same, with another number than [`HandlerError::INVALID`] for scripts.
    Refused {
        /// The messages.
        text: String,
        /// The number.
        code: i32,
    },
    /// What was written is in force; the messages are warnings.
    Warned(String),
    /// The handler gave a value, and something went wrong on the way.
    Doubtful {
        /// The value.
        value: String,
        /// What went wrong: the messages.
        problems: String,
    },
}

impl HandlerError {
    /// The number that scripts see when a handler refuses a value, if it has no other: Linux's for an invalid argument.
    pub const INVALID: i32 = -22;
    /// That of a handler that gives no particular reason.
    pub const UNSPECIFIED: i32 = -1;
    /// That of one that found nothing of that name.
    pub const NOT_FOUND: i32 = -2;
    /// That of one that has such a thing already.
    pub const EXISTS: i32 = -17;

    /// The handler refuses the value.
    pub fn new(text: impl fmt::Display) -> HandlerError {
        HandlerError::Rejected(text.to_string())
    }

    /// The handler refuses the value, with a number of its own for scripts.
    pub fn with_code(code: i32, text: impl fmt::Display) -> HandlerError {
        HandlerError::Refused { text: text.to_string(), code }
    }

    /// As scripts say it of a call that was a read or a write: they do not tell a missing handler from one of the other
    /// kind.
    pub fn of_call(&self, read: bool) -> String {
        match self {
            HandlerError::NoHandler(path) | HandlerError::Wrong { path, .. } => {
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
            HandlerError::Wrong { path, read: true } => write!(f, "‘{path}’ is a write handler"),
            HandlerError::Wrong { path, read: false } => write!(f, "‘{path}’ is a read handler"),
            HandlerError::NoParameter(path) => {
                write!(f, "read handler ‘{path}’ does not take parameters")
            }
            HandlerError::Busy(path) => write!(f, "‘{path}’ is busy"),
            HandlerError::Value(problem) => problem.fmt(f),
            HandlerError::Rejected(text)
            | HandlerError::Refused { text, .. }
            | HandlerError::Warned(text)
            | HandlerError::Doubtful { problems: text, .. } => f.write_str(text),
        }
    }
}

impl core::error::Error for HandlerError {}

impl From<SetupError> for HandlerError {
    fn from(error: SetupError) -> HandlerError {
        HandlerError::with_code(HandlerError::UNSPECIFIED, error)
    }
}
