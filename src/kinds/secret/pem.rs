//! PEM as far as a control plane has to understand it: is it what it says, and does a key belong
//! to a certificate? What cannot be decided counts as fine: Envoy looks at it again.

use x509_parser::pem::Pem;
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::public_key::PublicKey;
use x509_parser::revocation_list::CertificateRevocationList;

/// A certificate that can be read.
pub struct Certificate {
    /// The public key, and when it ends.
    public: Public,
    not_after: i64,
}

impl Certificate {
    /// When the certificate expires; `None` when that is beyond what can be told.
    pub fn not_after(&self) -> Option<jiff::Timestamp> {
        jiff::Timestamp::from_second(self.not_after).ok()
    }
}

/// What is known of a public key.
#[derive(PartialEq, Eq)]
enum Public {
    /// The modulus, without leading zeros.
    Rsa(Vec<u8>),
    /// The point.
    Ec(Vec<u8>),
    /// A kind that is not compared.
    Other,
}

/// A private key that can be read, reduced to its public half.
pub struct PrivateKey {
    public: Option<Public>,
}

/// The certificates in a PEM text; at least one.
pub fn certificates(bytes: &[u8]) -> Result<Vec<Certificate>, String> {
    let blocks = blocks(bytes)?;
    let mut found = Vec::new();
    for block in blocks.iter().filter(|b| is_certificate(&b.label)) {
        let number = found.len() + 1;
        let unreadable = || format!("certificate {number} of the PEM text cannot be read");
        let (rest, certificate) =
            X509Certificate::from_der(&block.contents).map_err(|_| unreadable())?;
        if !rest.is_empty() {
            return Err(unreadable());
        }
        let public = match certificate.public_key().parsed() {
            Ok(PublicKey::RSA(key)) => Public::Rsa(without_zeros(key.modulus)),
            Ok(PublicKey::EC(point)) => Public::Ec(point.data().to_vec()),
            Ok(_) | Err(_) => Public::Other,
        };
        let not_after = certificate.validity().not_after.timestamp();
        found.push(Certificate { public, not_after });
    }
    if found.is_empty() {
        return Err(nothing_of("CERTIFICATE", &blocks));
    }
    Ok(found)
}

fn is_certificate(label: &str) -> bool {
    matches!(label, "CERTIFICATE" | "X509 CERTIFICATE" | "TRUSTED CERTIFICATE")
}

/// Checks that there is at least one revocation list, and that all can be read.
pub fn revocation_lists(bytes: &[u8]) -> Result<(), String> {
    let blocks = blocks(bytes)?;
    let mut lists = blocks.iter().filter(|b| b.label == "X509 CRL").peekable();
    if lists.peek().is_none() {
        return Err(nothing_of("X509 CRL", &blocks));
    }
    match lists.all(|b| CertificateRevocationList::from_der(&b.contents).is_ok()) {
        true => Ok(()),
        false => Err("a revocation list of the PEM text cannot be read".to_owned()),
    }
}

/// The private key in a PEM text.
pub fn private_key(bytes: &[u8]) -> Result<PrivateKey, String> {
    let blocks = blocks(bytes)?;
    for block in &blocks {
        let der = block.contents.as_slice();
        let public = match block.label.as_str() {
            "RSA PRIVATE KEY" => pkcs1(der),
            "EC PRIVATE KEY" => sec1(der),
            "PRIVATE KEY" => pkcs8(der),
            "ENCRYPTED PRIVATE KEY" => {
                return Err("the key is encrypted; proxies have no password for it".to_owned());
            }
            _ => continue,
        };
        return match public {
            Some(public) => Ok(PrivateKey { public: Some(public).filter(|p| *p != Public::Other) }),
            None => Err("the private key of the PEM text cannot be read".to_owned()),
        };
    }
    Err(nothing_of("PRIVATE KEY", &blocks))
}

/// Whether the key may be the key of the first certificate.
pub fn may_belong_together(chain: &[Certificate], key: &PrivateKey) -> bool {
    match (chain.first().map(|c| &c.public), &key.public) {
        (None | Some(Public::Other), _) | (_, None) => true,
        (Some(certificate), Some(key)) => certificate == key,
    }
}

fn blocks(bytes: &[u8]) -> Result<Vec<Pem>, String> {
    // Text before and between blocks is allowed; the reader skips it.
    Pem::iter_from_buffer(bytes)
        .collect::<Result<_, _>>()
        .map_err(|_| "the PEM text is damaged".to_owned())
}

fn nothing_of(label: &str, blocks: &[Pem]) -> String {
    match blocks.first() {
        None => format!("expected PEM text with `-----BEGIN {label}-----`"),
        Some(block) => {
            format!("the PEM text holds `{}`, expected `{label}`", block.label)
        }
    }
}

fn without_zeros(number: &[u8]) -> Vec<u8> {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    number[zeros..].to_vec()
}

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const OBJECT_ID: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
/// `[1]`, constructed: the public key in an EC private key.
const EC_PUBLIC_KEY: u8 = 0xa1;

/// The content of the algorithm ids that are compared.
const RSA_ENCRYPTION: [u8; 9] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
const EC_KEY: [u8; 7] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];

/// `RSAPrivateKey` of RFC 8017: version, modulus, and the rest.
fn pkcs1(der: &[u8]) -> Option<Public> {
    let mut fields = Fields(Fields(der).next_of(SEQUENCE)?);
    fields.next_of(INTEGER)?;
    let modulus = fields.next_of(INTEGER)?;
    fields.next_of(INTEGER)?;
    Some(Public::Rsa(without_zeros(modulus)))
}

/// `ECPrivateKey` of RFC 5915; the public key is optional.
fn sec1(der: &[u8]) -> Option<Public> {
    let mut fields = Fields(Fields(der).next_of(SEQUENCE)?);
    fields.next_of(INTEGER)?;
    fields.next_of(OCTET_STRING)?;
    while let Some((tag, content)) = fields.next() {
        if tag == EC_PUBLIC_KEY {
            let (unused, point) = Fields(content).next_of(BIT_STRING)?.split_first()?;
            return (*unused == 0).then(|| Public::Ec(point.to_vec()));
        }
    }
    Some(Public::Other)
}

/// `OneAsymmetricKey` of RFC 5958: version, algorithm, key.
fn pkcs8(der: &[u8]) -> Option<Public> {
    let mut fields = Fields(Fields(der).next_of(SEQUENCE)?);
    fields.next_of(INTEGER)?;
    let algorithm = Fields(fields.next_of(SEQUENCE)?).next_of(OBJECT_ID)?;
    let key = fields.next_of(OCTET_STRING)?;
    if algorithm == RSA_ENCRYPTION {
        pkcs1(key)
    } else if algorithm == EC_KEY {
        sec1(key)
    } else {
        Some(Public::Other)
    }
}

/// The fields of a DER value, one after the other.
struct Fields<'d>(&'d [u8]);

impl<'d> Fields<'d> {
    /// The next field's tag and content; `None` at the end, and where it is damaged.
    fn next(&mut self) -> Option<(u8, &'d [u8])> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, rest) = rest.split_first()?;
        let (length, rest) = if first < 0x80 {
            (usize::from(first), rest)
        } else {
            let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            if bytes.is_empty() || bytes.len() > 4 {
                return None;
            }
            (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, content))
    }

    /// The next field's content, when it has this tag.
    fn next_of(&mut self, tag: u8) -> Option<&'d [u8]> {
        self.next().filter(|(found, _)| *found == tag).map(|(_, content)| content)
    }
}
