//! A server's certificate, its key, and the authority that its clients' certificates come from; the name in a
//! certificate, for people to read, and the user that a certificate names.
//!
//! Owns: reading their PEM text; the checks that certificate, key and authorities fit each other and are valid now;
//! the search for a name (the common name of the subject, else the first name of a host) and for a user (the first
//! user's name among the subject's alternative names).
//! Does not own: the files (the command), trust in a name: only a certificate that was verified has a name worth
//! reading.
//! Invariants: an error says which of the three is wrong, and why. An accepted identity serves a handshake. Any bytes
//! give a name or none, and a user or none.
//!
//! No crate reads the DER here: the crates that read whole certificates bring a dozen other crates.

use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{Error, InconsistentKeys, RootCertStore, ServerConfig, version};
use webpki::{EndEntityCert, Error as CertificateError, KeyUsage};

/// The protocol's name inside TLS.
const SUN_RPC: &[u8] = b"sunrpc";

/// Certificate chain and private key, as PEM text.
#[derive(Clone, Debug)]
pub struct TlsIdentity {
    /// The server's certificate, and those between it and an authority that clients know.
    pub certificates: Vec<u8>,
    /// Private key of the first certificate.
    pub key: Vec<u8>,
    /// The certificates of authorities. Only clients with a certificate of one of them are let in.
    pub clients: Option<Vec<u8>>,
}

/// Why an identity is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadIdentity {
    /// The certificate, or one that comes with it.
    #[error("{0}")]
    Certificate(String),
    /// The private key cannot be used.
    #[error("{0}")]
    Key(String),
    /// The authority of clients.
    #[error("{0}")]
    Clients(String),
}

/// An identity that serves.
#[derive(Debug)]
pub(crate) struct Certified {
    /// The settings of handshakes.
    pub(crate) settings: ServerConfig,
    /// When the first of its certificates expires, in seconds since 1970.
    pub(crate) expires_s: Option<u64>,
}

impl TlsIdentity {
    /// Checks this identity.
    pub(crate) fn certified(&self) -> Result<Certified, BadIdentity> {
        let provider = Arc::new(ring::default_provider());
        let chain = certificates(&self.certificates).map_err(BadIdentity::Certificate)?;
        check_valid_now(&chain[0]).map_err(BadIdentity::Certificate)?;
        let expires_s = chain.iter().filter_map(expires_s).min();
        let key = PrivateKeyDer::from_pem_slice(&self.key).map_err(|error| BadIdentity::Key(unread(error, "key")))?;
        let verifier = match &self.clients {
            Some(authorities) => verifier(authorities, &provider).map_err(BadIdentity::Clients)?,
            None => WebPkiClientVerifier::no_client_auth(),
        };
        let versions = ServerConfig::builder_with_provider(provider).with_protocol_versions(&[&version::TLS13]);
        let builder = versions.map_err(|error| BadIdentity::Key(error.to_string()))?;
        let settings = builder.with_client_cert_verifier(verifier).with_single_cert(chain, key);
        let mut settings = settings.map_err(|error| match error {
            Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                BadIdentity::Key("it is not the key of the certificate".to_owned())
            }
            error => BadIdentity::Key(format!("it cannot be used: {error}")),
        })?;
        settings.alpn_protocols = vec![SUN_RPC.to_vec()];
        settings.session_storage = Arc::new(NoServerSessionStorage {});
        settings.send_tls13_tickets = 0;
        Ok(Certified { settings, expires_s })
    }
}

fn certificates(text: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let all: Result<Vec<_>, PemError> = CertificateDer::pem_slice_iter(text).collect();
    match all {
        Ok(all) if all.is_empty() => Err(unread(PemError::NoItemsFound, "certificate")),
        Ok(all) => Ok(all),
        Err(error) => Err(unread(error, "certificate")),
    }
}

fn unread(error: PemError, what: &str) -> String {
    match error {
        PemError::NoItemsFound if what == "key" => {
            "it has no key in PEM form (BEGIN PRIVATE KEY, without a password)".to_owned()
        }
        PemError::NoItemsFound => format!("it has no {what} in PEM form (BEGIN CERTIFICATE)"),
        error => format!("it is no PEM text: {error}"),
    }
}

/// When a certificate expires: the checks say so at a time when it has.
fn expires_s(certificate: &CertificateDer<'_>) -> Option<u64> {
    /// The last second of the year 9999, which certificates without an end have as theirs.
    const LAST_S: u64 = 253_402_300_799;
    let at_last = UnixTime::since_unix_epoch(Duration::from_secs(LAST_S + 1));
    match checked(&EndEntityCert::try_from(certificate).ok()?, at_last) {
        Err(CertificateError::CertExpired { not_after, .. }) => Some(not_after.as_secs()),
        _ => None,
    }
}

/// The checks of a certificate for a server at a time.
fn checked(parsed: &EndEntityCert<'_>, time: UnixTime) -> Result<(), CertificateError> {
    let algorithms = ring::default_provider().signature_verification_algorithms.all;
    parsed.verify_for_usage(algorithms, &[], &[], time, KeyUsage::server_auth(), None, None).map(|_| ())
}

/// Refuses a certificate that clients would refuse now, apart from its authority, which only clients know.
fn check_valid_now(certificate: &CertificateDer<'_>) -> Result<(), String> {
    let parsed = EndEntityCert::try_from(certificate).map_err(|error| format!("it is no certificate: {error}"))?;
    let ago = |from: UnixTime, to: UnixTime| (to.as_secs().saturating_sub(from.as_secs())) / 86_400;
    match checked(&parsed, UnixTime::now()) {
        Err(CertificateError::CertExpired { time, not_after }) => {
            Err(format!("it expired {} days ago; renew it", ago(not_after, time)))
        }
        Err(CertificateError::CertNotValidYet { time, not_before }) => {
            Err(format!("it is not valid before {} days from now; look at the clock", ago(time, not_before)))
        }
        Err(CertificateError::RequiredEkuNotFoundContext(_)) => {
            Err("it is not for a server (its extended key usage has no serverAuth)".to_owned())
        }
        // Each other error is about the chain to an authority, and none is known here.
        _ => Ok(()),
    }
}

fn verifier(text: &[u8], provider: &Arc<CryptoProvider>) -> Result<Arc<dyn ClientCertVerifier>, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(text)? {
        roots.add(certificate).map_err(|error| format!("it has a certificate that cannot be read: {error}"))?;
    }
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
    builder.build().map_err(|error| error.to_string())
}

const OCTETS: u8 = 0x04;
const OBJECT: u8 = 0x06;
const UTF8: u8 = 0x0c;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
/// The tag `[0]`: of an otherName among alternative names, and of the value in an otherName.
const CONTEXT_0: u8 = 0xa0;
/// The extensions of a certificate.
const CONTEXT_3: u8 = 0xa3;
/// The object of a common name, 2.5.4.3.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
/// The object of the subject's alternative names, 2.5.29.17.
const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 0x11];
/// The object of a user's name, 1.3.6.1.4.1.2238.1.1.1, as FreeBSD's servers of NFS over TLS read it (rpc.tlsservd(8)).
const USER_NAME: &[u8] = &[0x2b, 0x06, 0x01, 0x04, 0x01, 0x91, 0x3e, 0x01, 0x01, 0x01];

/// The name in a certificate.
pub(crate) fn name(certificate: &CertificateDer<'_>) -> Option<String> {
    let parsed = EndEntityCert::try_from(certificate).ok()?;
    common_name(parsed.subject()).or_else(|| parsed.valid_dns_names().next().map(str::to_owned))
}

/// The common name in the contents of a subject: sets of pairs of an object and a text.
fn common_name(subject: &[u8]) -> Option<String> {
    let pairs = all(SET, subject).flat_map(|set| all(SEQUENCE, set));
    let text = pairs.filter_map(|pair| behind(COMMON_NAME, pair)).next()?;
    value(text).map(|(_, text, _)| String::from_utf8_lossy(text).into_owned())
}

/// The user that a certificate names, as `USER@DOMAIN`.
pub(crate) fn user<'a>(certificate: &'a CertificateDer<'_>) -> Option<&'a str> {
    let signed = all(SEQUENCE, all(SEQUENCE, certificate).next()?).next()?;
    let extensions = all(SEQUENCE, all(CONTEXT_3, signed).next()?).next()?;
    let names = all(SEQUENCE, extensions).filter_map(|extension| behind(ALTERNATIVE_NAMES, extension));
    let names = names.filter_map(|value| all(OCTETS, value).next()).filter_map(|names| all(SEQUENCE, names).next());
    let others = names.flat_map(|names| all(CONTEXT_0, names)).filter_map(|other| behind(USER_NAME, other));
    let mut texts = others.filter_map(|value| all(CONTEXT_0, value).next()).filter_map(|text| all(UTF8, text).next());
    texts.next().and_then(|text| std::str::from_utf8(text).ok())
}

/// The contents of all values with this tag, among the values of `der` up to the first that cannot be read.
fn all(tag: u8, mut der: &[u8]) -> impl Iterator<Item = &[u8]> {
    let values = std::iter::from_fn(move || {
        let (tag, contents, rest) = value(der)?;
        der = rest;
        Some((tag, contents))
    });
    values.filter(move |(own, _)| *own == tag).map(|(_, contents)| contents)
}

/// The values behind an object.
fn behind<'a>(object: &[u8], der: &'a [u8]) -> Option<&'a [u8]> {
    value(der).filter(|(tag, contents, _)| *tag == OBJECT && *contents == object).map(|(_, _, rest)| rest)
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
