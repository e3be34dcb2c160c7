//! Strings, names, ports and annotations.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

use packet::{annotation, iana, services};

use crate::error::ArgumentError;
use crate::names::NameKind;
use crate::text;

use super::numbers::integer;
use super::parser::FromArgument;
use super::setup::Setup;

impl FromArgument for String {
    const KIND: &'static str = "string";

    fn from_argument(text: &str, _: &Setup) -> Result<String, ArgumentError> {
        Ok(text::unquote(text))
    }
}

/// Text as written, including quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raw(pub String);

impl FromArgument for Raw {
    const KIND: &'static str = "text";

    fn from_argument(text: &str, _: &Setup) -> Result<Raw, ArgumentError> {
        Ok(Raw(text.to_owned()))
    }
}

/// One word, unquoted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word(pub String);

impl FromArgument for Word {
    const KIND: &'static str = "word";

    fn from_argument(text: &str, _: &Setup) -> Result<Word, ArgumentError> {
        let word = text::unquote(text);
        if word.is_empty() || word.contains(|letter: char| letter.is_whitespace()) {
            return Err(ArgumentError::Syntax);
        }
        Ok(Word(word))
    }
}

/// A file name: one word or a quoted string. Consecutive slashes count as one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileName(pub String);

impl FromArgument for FileName {
    const KIND: &'static str = "file";

    fn from_argument(text: &str, _: &Setup) -> Result<FileName, ArgumentError> {
        let mut name = text::unquote(text);
        if name.is_empty() || text::words(text).len() != 1 {
            return Err(ArgumentError::Syntax);
        }
        while name.contains("//") {
            name = name.replace("//", "/");
        }
        Ok(FileName(name))
    }
}

/// Bytes, with `\<hex>` for binary data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

impl FromArgument for Bytes {
    const KIND: &'static str = "bytes";

    fn from_argument(text: &str, _: &Setup) -> Result<Bytes, ArgumentError> {
        Ok(Bytes(text::unquote_bytes(text)))
    }
}

/// The name of an element, as written; resolved once all elements exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElementName(pub String);

impl FromArgument for ElementName {
    const KIND: &'static str = "element";

    fn from_argument(text: &str, _: &Setup) -> Result<ElementName, ArgumentError> {
        text::is_identifier(text)
            .then(|| ElementName(text.to_owned()))
            .ok_or_else(|| ArgumentError::new("does not name an element"))
    }
}

/// The path of a handler: `element.handler`, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandlerPath(pub String);

impl FromArgument for HandlerPath {
    const KIND: &'static str = "handler";

    fn from_argument(text: &str, _: &Setup) -> Result<HandlerPath, ArgumentError> {
        let path = text::unquote(text);
        if path.is_empty() || path.contains(|letter: char| letter.is_whitespace()) {
            return Err(ArgumentError::Syntax);
        }
        Ok(HandlerPath(path))
    }
}

/// An annotation field: a byte offset or a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnnotationField {
    /// Offset of the first byte.
    pub offset: usize,
    /// Size in bytes; zero if only the offset was given.
    pub size: usize,
}

impl FromArgument for AnnotationField {
    const KIND: &'static str = "annotation";

    fn from_argument(text: &str, setup: &Setup) -> Result<AnnotationField, ArgumentError> {
        if let Some(offset) = integer(text) {
            let offset = usize::try_from(offset).ok().filter(|offset| *offset < annotation::SIZE);
            let offset = offset.ok_or(ArgumentError::Syntax)?;
            return Ok(AnnotationField { offset, size: 0 });
        }
        if let Some(field) = annotation::FIELDS.iter().find(|field| field.name == text) {
            return Ok(AnnotationField { offset: field.offset.into(), size: field.size.into() });
        }
        match setup.names().find(NameKind::Annotation, setup.scope(), text).as_deref() {
            Some(&[offset, size]) => Ok(AnnotationField { offset: offset.into(), size: size.into() }),
            _ => Err(ArgumentError::Syntax),
        }
    }
}

/// The offset of an annotation field of `SIZE` bytes, written as the offset or as the name of a field of that size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Annotation<const SIZE: usize>(pub usize);

impl<const SIZE: usize> FromArgument for Annotation<SIZE> {
    const KIND: &'static str = "annotation";

    fn from_argument(text: &str, setup: &Setup) -> Result<Annotation<SIZE>, ArgumentError> {
        let field = AnnotationField::from_argument(text, setup)?;
        let fits = (field.size == 0 || field.size == SIZE) && field.offset + SIZE <= annotation::SIZE;
        fits.then_some(Annotation(field.offset)).ok_or(ArgumentError::Syntax)
    }
}

/// A TCP port, by number or name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpPort(pub u16);

/// A UDP port, by number or name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpPort(pub u16);

/// An IP protocol, by number or name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpProtocol(pub u8);

/// The error for a number that is out of range for a port.
const TOO_LARGE: &str = "overflow, range 0-65535";

fn port(text: &str, kind: NameKind, setup: &Setup) -> Result<u16, ArgumentError> {
    if let Some(number) = integer(text) {
        let number = u32::try_from(number).map_err(|_| ArgumentError::Syntax)?;
        return u16::try_from(number).map_err(|_| ArgumentError::new(TOO_LARGE));
    }
    if let Some(&port) =
        setup.names().find(kind, setup.scope(), text).as_deref().and_then(<[u8]>::first_chunk)
    {
        return u16::try_from(u32::from_be_bytes(port)).map_err(|_| ArgumentError::new(TOO_LARGE));
    }
    let built_in = if kind == NameKind::TcpPort { services::tcp(text) } else { services::udp(text) };
    built_in.ok_or(ArgumentError::Syntax)
}

impl FromArgument for TcpPort {
    const KIND: &'static str = "TCP port";

    fn from_argument(text: &str, setup: &Setup) -> Result<TcpPort, ArgumentError> {
        port(text, NameKind::TcpPort, setup).map(TcpPort)
    }
}

impl FromArgument for UdpPort {
    const KIND: &'static str = "UDP port";

    fn from_argument(text: &str, setup: &Setup) -> Result<UdpPort, ArgumentError> {
        port(text, NameKind::UdpPort, setup).map(UdpPort)
    }
}

impl FromArgument for IpProtocol {
    const KIND: &'static str = "IP protocol";

    fn from_argument(text: &str, setup: &Setup) -> Result<IpProtocol, ArgumentError> {
        if let Some(number) = integer(text) {
            return u8::try_from(number)
                .map(IpProtocol)
                .map_err(|_| ArgumentError::semantic("bad IP protocol"));
        }
        if let Some(&[number]) = setup.names().find(NameKind::Protocol, setup.scope(), text).as_deref() {
            return Ok(IpProtocol(number));
        }
        iana::protocol(text).map(IpProtocol).ok_or_else(|| ArgumentError::new("invalid number"))
    }
}

impl IpProtocol {
    /// The name of the protocol, if it has one.
    pub fn name(self) -> Option<&'static str> {
        iana::protocol_name(self.0)
    }
}
