//! The macro that declares a header: its length, and the offset and type of each field.

use crate::address::MacAddr;
use core::net::{Ipv4Addr, Ipv6Addr};

/// A value with a fixed encoding on the wire, in network byte order.
pub(crate) trait FieldValue: Copy {
    /// The encoded bytes.
    type Bytes: Copy;
    /// Number of bytes.
    const SIZE: usize = size_of::<Self::Bytes>();
    /// Reads the value at a constant offset, which the callers check at compile time.
    fn load<const LENGTH: usize>(header: &[u8; LENGTH], at: usize) -> Self;
    /// Writes the value at a constant offset, which the callers check at compile time.
    fn store<const LENGTH: usize>(self, header: &mut [u8; LENGTH], at: usize);
}

/// Fails the build if a field extends beyond its header.
pub(crate) const fn fits<T: FieldValue>(at: usize, length: usize) {
    assert!(at + T::SIZE <= length, "the field lies outside the header");
}

macro_rules! wire {
    ($type:ty, $size:literal, $from:expr, $to:expr) => {
        impl FieldValue for $type {
            type Bytes = [u8; $size];

            #[inline(always)]
            fn load<const LENGTH: usize>(header: &[u8; LENGTH], at: usize) -> Self {
                let mut bytes = [0; $size];
                bytes.copy_from_slice(&header[at..at + $size]);
                $from(bytes)
            }

            #[inline(always)]
            fn store<const LENGTH: usize>(self, header: &mut [u8; LENGTH], at: usize) {
                let bytes: [u8; $size] = $to(self);
                header[at..at + $size].copy_from_slice(&bytes);
            }
        }
    };
}

wire!(u8, 1, |b: [u8; 1]| b[0], |v| [v]);
wire!(u16, 2, u16::from_be_bytes, u16::to_be_bytes);
wire!(u32, 4, u32::from_be_bytes, u32::to_be_bytes);
wire!(MacAddr, 6, MacAddr, |v: MacAddr| v.0);
wire!(Ipv4Addr, 4, Ipv4Addr::from, |v: Ipv4Addr| v.octets());
wire!(Ipv6Addr, 16, Ipv6Addr::from, |v: Ipv6Addr| v.octets());

/// Declares `View` and `ViewMut` of a header with `LENGTH` fixed bytes, and the accessors of its plain fields.
macro_rules! header {
    (
        $(#[$about:meta])*
        $length:literal bytes;
        $( $(#[$field_about:meta])* $get:ident, $set:ident: $type:ty = $at:literal; )*
    ) => {
        /// The length of the fixed part of the header, in bytes.
        pub const LENGTH: usize = $length;

        $(#[$about])*
        #[derive(Clone, Copy, Debug)]
        pub struct View<'a> {
            fixed: &'a [u8; LENGTH],
            rest: &'a [u8],
        }

        $(#[$about])*
        ///
        /// This view is mutable.
        #[derive(Debug)]
        pub struct ViewMut<'a> {
            fixed: &'a mut [u8; LENGTH],
            #[allow(dead_code, reason = "not every header has options to write")]
            rest: &'a mut [u8],
        }

        impl<'a> View<'a> {
            /// A view of bytes that start with the header; `None` if they are shorter than its fixed part.
            #[inline]
            pub const fn new(bytes: &'a [u8]) -> Option<View<'a>> {
                match bytes.split_first_chunk() {
                    Some((fixed, rest)) => Some(View { fixed, rest }),
                    None => None,
                }
            }

            /// The fixed part of the header.
            #[inline]
            pub const fn fixed(&self) -> &'a [u8; LENGTH] {
                self.fixed
            }

            /// Everything after the fixed part: options, payload, padding.
            #[inline]
            pub const fn rest(&self) -> &'a [u8] {
                self.rest
            }

            $(
                $(#[$field_about])*
                #[inline]
                pub fn $get(&self) -> $type {
                    const { $crate::view::field::fits::<$type>($at, LENGTH) };
                    <$type as $crate::view::field::FieldValue>::load(self.fixed, $at)
                }
            )*
        }

        impl<'a> ViewMut<'a> {
            /// A mutable view of bytes that start with the header; `None` if they are shorter than its fixed part.
            #[inline]
            pub const fn new(bytes: &'a mut [u8]) -> Option<ViewMut<'a>> {
                match bytes.split_first_chunk_mut() {
                    Some((fixed, rest)) => Some(ViewMut { fixed, rest }),
                    None => None,
                }
            }

            /// The same header, for reading.
            #[inline]
            pub const fn view(&self) -> View<'_> {
                View { fixed: self.fixed, rest: self.rest }
            }

            $(
                $(#[$field_about])*
                #[inline]
                pub fn $set(&mut self, value: $type) {
                    const { $crate::view::field::fits::<$type>($at, LENGTH) };
                    <$type as $crate::view::field::FieldValue>::store(value, self.fixed, $at);
                }
            )*
        }
    };
}
