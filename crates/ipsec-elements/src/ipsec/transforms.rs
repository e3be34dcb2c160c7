//! The transforms of an association: AES in CBC mode and HMAC-SHA-1-96.

use aes::Aes128;
use aes::cipher::inout::InOutBuf;
use aes::cipher::{BlockDecryptMut, BlockEncrypt, BlockEncryptMut, InnerIvInit, KeyInit};
use alloc::vec::Vec;
use hmac::{Hmac, Mac};
use sha1::Sha1;

/// Bytes of a block of AES, and of an initialisation vector.
pub(super) const BLOCK: usize = 16;
/// Bytes of a digest in a packet (RFC 2404, section 2).
pub(super) const DIGEST: usize = 12;

/// The keys of an association.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Keys {
    pub(super) encryption: [u8; BLOCK],
    /// 20 bytes, as RFC 2404 has it, or 16, as Click has it.
    pub(super) authentication: Vec<u8>,
}

/// The transforms of an association, with its keys.
pub(super) struct Transforms {
    cipher: Aes128,
    /// HMAC-SHA-1 before the first byte.
    digest: Hmac<Sha1>,
}

impl Transforms {
    pub(super) fn new(keys: &Keys) -> Option<Transforms> {
        let digest = <Hmac<Sha1> as Mac>::new_from_slice(&keys.authentication).ok()?;
        Some(Transforms { cipher: Aes128::new(&keys.encryption.into()), digest })
    }

    /// Encrypts one block: the initialisation vector of a packet, from a number that no other packet has.
    pub(super) fn encrypt_block(&self, block: [u8; BLOCK]) -> [u8; BLOCK] {
        let mut block = block.into();
        self.cipher.encrypt_block(&mut block);
        block.into()
    }

    /// Encrypts whole blocks in place. Bytes after the last one stay.
    pub(super) fn encrypt(&self, vector: [u8; BLOCK], bytes: &mut [u8]) {
        let (blocks, _) = InOutBuf::from(bytes).into_chunks();
        cbc::Encryptor::inner_iv_init(&self.cipher, &vector.into()).encrypt_blocks_inout_mut(blocks);
    }

    /// Decrypts whole blocks in place. Bytes after the last one stay.
    pub(super) fn decrypt(&self, vector: [u8; BLOCK], bytes: &mut [u8]) {
        let (blocks, _) = InOutBuf::from(bytes).into_chunks();
        cbc::Decryptor::inner_iv_init(&self.cipher, &vector.into()).decrypt_blocks_inout_mut(blocks);
    }

    /// The digest of `bytes`.
    pub(super) fn digest(&self, bytes: &[u8]) -> [u8; DIGEST] {
        let whole = self.digest.clone().chain_update(bytes).finalize().into_bytes();
        whole.first_chunk().copied().unwrap_or_default()
    }

    /// Whether `digest` is the digest of `bytes`, in a time that does not depend on them.
    pub(super) fn verifies(&self, bytes: &[u8], digest: &[u8; DIGEST]) -> bool {
        self.digest.clone().chain_update(bytes).verify_truncated_left(digest).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    /// The bytes that hexadecimal digits stand for.
    fn bytes(digits: &str) -> Vec<u8> {
        let digits: Vec<u8> = digits.bytes().filter(u8::is_ascii_hexdigit).collect();
        digits
            .chunks(2)
            .map(|two| u8::from_str_radix(core::str::from_utf8(two).unwrap(), 16).unwrap())
            .collect()
    }

    fn transforms(encryption: &str, authentication: &[u8]) -> Transforms {
        let encryption = bytes(encryption).try_into().unwrap();
        Transforms::new(&Keys { encryption, authentication: authentication.to_vec() }).unwrap()
    }

    /// RFC 3602, section 4, cases 1 to 4.
    #[test]
    fn the_cipher_gives_the_vectors_of_its_rfc() {
        let cases = [
            (
                "06a9214036b8a15b512e03d534120006",
                "3dafba429d9eb430b422da802c9fac41",
                b"Single block msg".to_vec(),
                "e353779c1079aeb82708942dbe77181a",
            ),
            (
                "c286696d887c9aa0611bbb3e2025a45a",
                "562e17996d093d28ddb3ba695a2e6f58",
                (0..32).collect(),
                "d296cd94c2cccf8a3a863028b5e1dc0a7586602d253cfff91b8266bea6d61ab1",
            ),
            (
                "6c3ea0477630ce21a2ce334aa746c2cd",
                "c782dc4c098c66cbd9cd27d825682c81",
                b"This is a 48-byte message (exactly 3 AES blocks)".to_vec(),
                "d0a02b3836451753d493665d33f0e8862dea54cdb293abc7506939276772f8d5021c19216bad525c8579695d83ba2684",
            ),
            (
                "56e47a38c5598974bc46903dba290349",
                "8ce82eefbea0da3c44699ed7db51b7d9",
                (0xa0..=0xdf).collect(),
                "c30e32ffedc0774e6aff6af0869f71aa0f3af07a9a31a9c684db207eb0ef8e4e
                 35907aa632c3ffdf868bb7b29d3d46ad83ce9f9a102ee99d49a53e87f4c3da55",
            ),
        ];
        for (key, vector, plain, encrypted) in cases {
            let (transforms, vector) = (transforms(key, &[0; 20]), bytes(vector).try_into().unwrap());
            let mut text = plain.clone();
            transforms.encrypt(vector, &mut text);
            assert_eq!(text, bytes(encrypted), "{key}");
            transforms.decrypt(vector, &mut text);
            assert_eq!(text, plain, "{key}");
        }
    }

    /// RFC 2202, section 3. The digests are the first 96 bits.
    #[test]
    fn the_digest_gives_the_vectors_of_its_rfc() {
        let counting: Vec<u8> = (1..=25).collect();
        let cases: [(&[u8], Vec<u8>, &str); 7] = [
            (&[0x0b; 20], b"Hi There".to_vec(), "b617318655057264e28bc0b6"),
            (b"Jefe", b"what do ya want for nothing?".to_vec(), "effcdf6ae5eb2fa2d27416d5"),
            (&[0xaa; 20], vec![0xdd; 50], "125d7342b9ac11cd91a39af4"),
            (&counting, vec![0xcd; 50], "4c9007f4026250c6bc8414f9"),
            (&[0x0c; 20], b"Test With Truncation".to_vec(), "4c1a03424b55e07fe7f27be1"),
            (
                &[0xaa; 80],
                b"Test Using Larger Than Block-Size Key - Hash Key First".to_vec(),
                "aa4ae5e15272d00e95705637",
            ),
            (
                &[0xaa; 80],
                b"Test Using Larger Than Block-Size Key and Larger Than One Block-Size Data".to_vec(),
                "e8e99d0f45237d786d6bbaa7",
            ),
        ];
        for (key, data, expected) in cases {
            let transforms = transforms("00000000000000000000000000000000", key);
            let digest = transforms.digest(&data);
            assert_eq!(digest.to_vec(), bytes(expected));
            assert!(transforms.verifies(&data, &digest));
            for bit in 0..8 * DIGEST {
                let mut wrong = digest;
                wrong[bit / 8] ^= 1 << (bit % 8);
                assert!(!transforms.verifies(&data, &wrong), "bit {bit}");
            }
        }
    }

    #[test]
    fn blocks_that_are_not_whole_stay() {
        let transforms = transforms("06a9214036b8a15b512e03d534120006", &[0; 20]);
        let mut text = [7; 28];
        transforms.encrypt([1; BLOCK], &mut text);
        assert_eq!(text[BLOCK..], [7; 12]);
        transforms.decrypt([1; BLOCK], &mut text);
        assert_eq!(text, [7; 28]);
        transforms.decrypt([1; BLOCK], &mut []);
    }
}
