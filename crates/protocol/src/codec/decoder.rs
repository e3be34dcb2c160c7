//! Builds values from MessagePack.
//!
//! The decoder of `rmp-serde` handles any kind of value wherever one is wanted, and so once for each of our several hundred
//! types: it was 0.6 MB of the program. This one only accepts what its encoder writes for the type that is wanted.

use super::error::DecodeError;
use super::token::{Token, Tokens};
use rmp::Marker;
use serde::de::{self, DeserializeSeed, Visitor};

/// How deep a message may be nested. No type of this crate comes near it.
const MAX_DEPTH: u8 = 64;

#[derive(Debug)]
pub(super) struct Decoder<'de> {
    tokens: Tokens<'de>,
    depth: u8,
}

impl<'de> Decoder<'de> {
    pub(super) fn new(bytes: &'de [u8]) -> Self {
        Self { tokens: Tokens(bytes), depth: 0 }
    }

    /// The number of bytes that have not been read.
    pub(super) fn left(&self) -> usize {
        self.tokens.0.len()
    }

    fn enter(&mut self) -> Result<(), DecodeError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH { Err(DecodeError::Depth) } else { Ok(()) }
    }

    /// A number of any kind. The visitor checks that it fits.
    fn number<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.tokens.next()? {
            Token::Unsigned(value) => visitor.visit_u64(value),
            Token::Signed(value) => visitor.visit_i64(value),
            Token::Float(value) => visitor.visit_f64(value),
            other => Err(de::Error::invalid_type(other.unexpected(), &visitor)),
        }
    }

    fn list<V: Visitor<'de>>(&mut self, length: u32, visitor: V) -> Result<V::Value, DecodeError> {
        self.enter()?;
        let mut items = Items { decoder: self, left: length };
        let value = visitor.visit_seq(&mut items)?;
        items.end()?;
        Ok(value)
    }

    fn pairs<V: Visitor<'de>>(&mut self, length: u32, visitor: V) -> Result<V::Value, DecodeError> {
        self.enter()?;
        let mut items = Items { decoder: self, left: length };
        let value = visitor.visit_map(&mut items)?;
        items.end()?;
        Ok(value)
    }
}

/// The rest of a list or a map.
struct Items<'a, 'de> {
    decoder: &'a mut Decoder<'de>,
    left: u32,
}

impl Items<'_, '_> {
    /// Whether there is another item, which is taken.
    fn take(&mut self) -> bool {
        let any = self.left > 0;
        self.left = self.left.saturating_sub(1);
        any
    }

    /// The number of items that follow, at most one for each byte.
    fn hint(&self) -> usize {
        usize::try_from(self.left).unwrap_or(usize::MAX).min(self.decoder.left())
    }

    fn end(self) -> Result<(), DecodeError> {
        self.decoder.depth -= 1;
        if self.left == 0 { Ok(()) } else { Err(DecodeError::Excess(self.left)) }
    }
}

impl<'de> de::SeqAccess<'de> for &mut Items<'_, 'de> {
    type Error = DecodeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, DecodeError> {
        if self.take() { seed.deserialize(&mut *self.decoder).map(Some) } else { Ok(None) }
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.hint())
    }
}

impl<'de> de::MapAccess<'de> for &mut Items<'_, 'de> {
    type Error = DecodeError;

    fn next_key_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, DecodeError> {
        if self.take() { seed.deserialize(&mut *self.decoder).map(Some) } else { Ok(None) }
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, DecodeError> {
        seed.deserialize(&mut *self.decoder)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.hint())
    }
}

/// A variant: its name, or a map of its name to its value.
struct Variant<'a, 'de> {
    decoder: &'a mut Decoder<'de>,
    has_value: bool,
}

impl<'a, 'de> Variant<'a, 'de> {
    fn value(self) -> Result<&'a mut Decoder<'de>, DecodeError> {
        if self.has_value { Ok(self.decoder) } else { Err(DecodeError::NoValue) }
    }
}

impl<'de> de::EnumAccess<'de> for Variant<'_, 'de> {
    type Error = DecodeError;
    type Variant = Self;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Self), DecodeError> {
        Ok((seed.deserialize(&mut *self.decoder)?, self))
    }
}

impl<'de> de::VariantAccess<'de> for Variant<'_, 'de> {
    type Error = DecodeError;

    fn unit_variant(self) -> Result<(), DecodeError> {
        if self.has_value { self.decoder.tokens.skip() } else { Ok(()) }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, DecodeError> {
        seed.deserialize(self.value()?)
    }

    fn tuple_variant<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, DecodeError> {
        de::Deserializer::deserialize_tuple(self.value()?, length, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        de::Deserializer::deserialize_struct(self.value()?, "", fields, visitor)
    }
}

/// Methods of the same kind of value.
macro_rules! forward {
    ($to:ident: $($method:ident($($argument:ident: $type:ty),*))*) => {
        $(fn $method<V: Visitor<'de>>(self, $($argument: $type,)* visitor: V) -> Result<V::Value, DecodeError> {
            $(let _ = $argument;)*
            self.$to(visitor)
        })*
    };
}

impl<'de> de::Deserializer<'de> for &mut Decoder<'de> {
    type Error = DecodeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.tokens.next()? {
            Token::Nil => visitor.visit_unit(),
            Token::Bool(value) => visitor.visit_bool(value),
            Token::Unsigned(value) => visitor.visit_u64(value),
            Token::Signed(value) => visitor.visit_i64(value),
            Token::Float(value) => visitor.visit_f64(value),
            Token::Text(text) => visitor.visit_str(text),
            Token::Bytes(bytes) => visitor.visit_bytes(bytes),
            Token::List(items) => self.list(items, visitor),
            Token::Map(pairs) => self.pairs(pairs, visitor),
        }
    }

    forward!(number: deserialize_u8() deserialize_u16() deserialize_u32() deserialize_u64()
        deserialize_i8() deserialize_i16() deserialize_i32() deserialize_i64() deserialize_f32() deserialize_f64());
    forward!(deserialize_str: deserialize_char() deserialize_string() deserialize_identifier());
    forward!(deserialize_any: deserialize_bytes() deserialize_byte_buf());
    forward!(deserialize_seq: deserialize_tuple(length: usize)
        deserialize_tuple_struct(name: &'static str, length: usize));
    forward!(deserialize_map: deserialize_struct(name: &'static str, fields: &'static [&'static str]));

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.tokens.next()? {
            Token::Bool(value) => visitor.visit_bool(value),
            other => Err(de::Error::invalid_type(other.unexpected(), &visitor)),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.tokens.next()? {
            Token::Text(text) => visitor.visit_str(text),
            other => Err(de::Error::invalid_type(other.unexpected(), &visitor)),
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.tokens.next()? {
            Token::Nil => visitor.visit_unit(),
            other => Err(de::Error::invalid_type(other.unexpected(), &visitor)),
        }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        self.tokens.skip()?;
        visitor.visit_unit()
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        if self.tokens.peek()? == Marker::Null {
            self.tokens.skip()?;
            return visitor.visit_none();
        }
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.tokens.next()? {
            Token::List(items) => self.list(items, visitor),
            other => Err(de::Error::invalid_type(other.unexpected(), &visitor)),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.tokens.next()? {
            Token::Map(pairs) => self.pairs(pairs, visitor),
            other => Err(de::Error::invalid_type(other.unexpected(), &visitor)),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        let has_value = matches!(self.tokens.peek()?, Marker::FixMap(_) | Marker::Map16 | Marker::Map32);
        if has_value && !matches!(self.tokens.next()?, Token::Map(1)) {
            return Err(DecodeError::Variant);
        }
        self.enter()?;
        let value = visitor.visit_enum(Variant { decoder: &mut *self, has_value })?;
        self.depth -= 1;
        Ok(value)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        self.tokens.skip()?;
        visitor.visit_unit()
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}
