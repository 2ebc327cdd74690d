//! The question for TLS, the handshake, and the way of calls through it.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, version};

use crate::certificates::{Authority, Issued};

/// The call that asks for TLS, as a whole record: NULL of NFS version 3, with the flavour 7.
pub const PROBE: [u8; 44] = {
    let mut record = [0; 44];
    (record[0], record[3]) = (0x80, 40);
    record[7] = 9;
    record[15] = 2;
    (record[17], record[18], record[19]) = (1, 0x86, 0xa3);
    record[23] = 3;
    record[31] = 7;
    record
};

/// The reply to it of a server with TLS.
const BEGIN: [u8; 36] = *b"\x80\0\0\x20\0\0\0\x09\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\x08STARTTLS\0\0\0\0";

/// The authority that a client trusts, and its own certificate.
#[derive(Clone)]
pub struct Trust(Arc<ClientConfig>);

impl Trust {
    /// Trusts servers with a certificate of `authority`; shows `own`, if there is one.
    pub fn new(authority: &Authority, own: Option<&Issued>) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(authority.certificate.as_bytes()).unwrap()).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
        let builder = builder.with_protocol_versions(&[&version::TLS13]).unwrap().with_root_certificates(roots);
        let mut config = match own {
            None => builder.with_no_client_auth(),
            Some(Issued { certificate, key }) => {
                let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
                builder.with_client_auth_cert(chain, key).unwrap()
            }
        };
        config.alpn_protocols = vec![b"sunrpc".to_vec()];
        Self(Arc::new(config))
    }

    /// A session that has not begun.
    pub fn session(&self) -> ClientConnection {
        ClientConnection::new(Arc::clone(&self.0), ServerName::try_from("localhost").unwrap()).unwrap()
    }

    /// The same trust, for another protocol inside TLS.
    #[must_use]
    pub fn for_protocol(&self, name: &[u8]) -> Self {
        let mut config = ClientConfig::clone(&self.0);
        config.alpn_protocols = vec![name.to_vec()];
        Self(Arc::new(config))
    }
}

/// Asks for TLS. The server waits for a handshake then.
pub fn tell_to_begin(server: &mut TcpStream) -> io::Result<()> {
    server.write_all(&PROBE)?;
    let mut reply = [0; BEGIN.len()];
    server.read_exact(&mut reply)?;
    if reply == BEGIN { Ok(()) } else { Err(io::Error::other(format!("no STARTTLS: {reply:?}"))) }
}

/// Makes a connection that goes through TLS to the server. The relay encrypts the bytes that a test writes to it.
pub fn secured(mut server: TcpStream, trust: &Trust) -> io::Result<TcpStream> {
    tell_to_begin(&mut server)?;
    let mut session = trust.session();
    while session.is_handshaking() {
        session.complete_io(&mut server)?;
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let near = TcpStream::connect(listener.local_addr()?)?;
    let (far, _) = listener.accept()?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let session = Arc::new(Mutex::new(session));
    let (shared, from, to) = (Arc::clone(&session), far.try_clone()?, server.try_clone()?);
    thread::spawn(move || {
        let _ = encrypt(from, &to, &shared);
        let _ = to.shutdown(Shutdown::Write);
    });
    thread::spawn(move || {
        let _ = decrypt(server, &far, &session);
        let _ = far.shutdown(Shutdown::Both);
    });
    Ok(near)
}

fn encrypt(mut from: TcpStream, mut to: &TcpStream, session: &Mutex<ClientConnection>) -> io::Result<()> {
    let mut buffer = vec![0; 256 << 10];
    loop {
        let count = from.read(&mut buffer)?;
        let mut sealed = Vec::new();
        {
            let mut session = session.lock().unwrap();
            match count {
                0 => session.send_close_notify(),
                count => {
                    session.set_buffer_limit(None);
                    session.writer().write_all(&buffer[..count])?;
                }
            }
            while session.wants_write() {
                session.write_tls(&mut sealed)?;
            }
        }
        to.write_all(&sealed)?;
        if count == 0 {
            return Ok(());
        }
    }
}

fn decrypt(mut from: TcpStream, mut to: &TcpStream, session: &Mutex<ClientConnection>) -> io::Result<()> {
    let mut buffer = vec![0; 256 << 10];
    loop {
        let count = from.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        let mut clear = Vec::new();
        {
            let mut session = session.lock().unwrap();
            let mut sealed = &buffer[..count];
            while !sealed.is_empty() {
                if session.read_tls(&mut sealed)? == 0 {
                    return Ok(());
                }
                let state = session.process_new_packets().map_err(io::Error::other)?;
                let before = clear.len();
                clear.resize(before + state.plaintext_bytes_to_read(), 0);
                session.reader().read_exact(&mut clear[before..])?;
            }
        }
        to.write_all(&clear)?;
    }
}
