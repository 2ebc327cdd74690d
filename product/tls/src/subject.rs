//! The name in a certificate, for people to read.
//!
//! Owns: finding it: the common name of the subject, else the first name of a host.
//! Does not own: trust in it: only a certificate that was verified has a name worth reading.
//! Invariants: any bytes give a name or none.

use rustls::pki_types::CertificateDer;
use webpki::EndEntityCert;

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT: u8 = 0x06;
/// The object of a common name, 2.5.4.3.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];

/// The name in a certificate.
pub(crate) fn name(certificate: &CertificateDer<'_>) -> Option<String> {
    let parsed = EndEntityCert::try_from(certificate).ok()?;
    common_name(parsed.subject()).or_else(|| parsed.valid_dns_names().next().map(str::to_owned))
}

/// The common name in the contents of a subject: sets of pairs of an object and a text.
fn common_name(mut subject: &[u8]) -> Option<String> {
    while let Some((SET, mut set, rest)) = value(subject) {
        subject = rest;
        while let Some((SEQUENCE, pair, rest)) = value(set) {
            set = rest;
            if let Some((OBJECT, COMMON_NAME, text)) = value(pair) {
                return value(text).map(|(_, text, _)| String::from_utf8_lossy(text).into_owned());
            }
        }
    }
    None
}

/// The tag and the contents of the first value in DER, and the bytes behind it.
fn value(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, len], rest) = der.split_first_chunk()?;
    let (len, rest) = match len {
        len @ ..=0x7f => (usize::from(len), rest),
        // Names of 64 KiB and more are none.
        0x81 => rest.split_first().map(|(len, rest)| (usize::from(*len), rest))?,
        0x82 => rest.split_first_chunk().map(|(len, rest)| (usize::from(u16::from_be_bytes(*len)), rest))?,
        _ => return None,
    };
    rest.split_at_checked(len).map(|(contents, rest)| (tag, contents, rest))
}

#[cfg(test)]
mod tests;
