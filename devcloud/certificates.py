"""Certificate authorities of a platform on one machine, made with `cryptography` (no openssl program needed).

Keys are ECDSA P-256. Extensions follow RFC 5280 as strict verifiers ask: key identifiers, key usage, basic constraints.
"""

import datetime as dt
import ipaddress
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from devcloud.errors import DevcloudError
from devcloud.paths import write_private

_AUTHORITY_DAYS = 3650
_LEAF_DAYS = 365
# A clock that runs a little behind must not refuse a fresh certificate.
_BACKDATED = dt.timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its private key, both PEM."""

    certificate_pem: bytes
    key_pem: bytes = field(repr=False)

    def write(self, folder: Path, name: str) -> tuple[Path, Path]:
        """Write `<name>.crt` and `<name>.key`, readable by this user only; return both paths."""
        certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
        write_private(certificate, self.certificate_pem)
        write_private(key, self.key_pem)
        return certificate, key


@dataclass(frozen=True, slots=True)
class Subject:
    """Whom a certificate names.

    Attributes:
        common_name: For a client of Kubernetes the user.
        organizations: For a client of Kubernetes the groups.
        hosts: DNS names and IP addresses of a server.
        is_server: Whether it may serve although it names no host.
    """

    common_name: str
    organizations: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    is_server: bool = False


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority that signs servers and clients of this machine."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey = field(repr=False)

    @property
    def pem(self) -> bytes:
        """The authority's certificate, PEM: what a client trusts."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def issue(self, subject: Subject) -> KeyPair:
        """Sign a new key for a subject; a server may serve as well as call, everybody else may only call."""
        key = ec.generate_private_key(ec.SECP256R1())
        now = dt.datetime.now(dt.UTC)
        purposes = [ExtendedKeyUsageOID.CLIENT_AUTH]
        if subject.hosts or subject.is_server:
            purposes.append(ExtendedKeyUsageOID.SERVER_AUTH)
        builder = (
            x509.CertificateBuilder()
            .subject_name(_name(subject))
            .issuer_name(self.certificate.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _BACKDATED)
            .not_valid_after(now + dt.timedelta(days=_LEAF_DAYS))
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False)
        )
        if subject.hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName(_alternatives(subject.hosts)), critical=False)
        certificate = builder.sign(self.key, hashes.SHA256())
        return KeyPair(certificate.public_bytes(serialization.Encoding.PEM), private_pem(key))


def new_authority(common_name: str) -> Authority:
    """Make a self-signed authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    now = dt.datetime.now(dt.UTC)
    name = _name(Subject(common_name))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + dt.timedelta(days=_AUTHORITY_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Authority(certificate, key)


def authority_in(folder: Path, name: str) -> Authority:
    """Load the authority that a folder holds as `<name>.crt` and `<name>.key`, made and written when absent.

    Raises:
        DevcloudError: The files are there and damaged.
    """
    certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
    if not (certificate.exists() and key.exists()):
        authority = new_authority(f"Fairlead devcloud {name}")
        KeyPair(authority.pem, private_pem(authority.key)).write(folder, name)
        return authority
    try:
        loaded = serialization.load_pem_private_key(key.read_bytes(), password=None)
        issued = x509.load_pem_x509_certificate(certificate.read_bytes())
    except ValueError as error:
        raise DevcloudError(f"{certificate} or its key is damaged: remove both, then try again") from error
    if not isinstance(loaded, ec.EllipticCurvePrivateKey):
        raise DevcloudError(f"{key} is no ECDSA key: remove it and {certificate}, then try again")
    return Authority(issued, loaded)


def private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Return a private key as unencrypted PKCS #8 PEM."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def signing_keys_in(folder: Path, name: str) -> tuple[Path, Path]:
    """Return the paths of a bare key pair, `<name>.key` and `<name>.pub`, made when absent."""
    private, public = folder / f"{name}.key", folder / f"{name}.pub"
    if not (private.exists() and public.exists()):
        key = ec.generate_private_key(ec.SECP256R1())
        spki = key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        write_private(private, private_pem(key))
        write_private(public, spki)
    return private, public


def _name(subject: Subject) -> x509.Name:
    organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in subject.organizations]
    return x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, subject.common_name)])


def _alternatives(hosts: tuple[str, ...]) -> list[x509.GeneralName]:
    names: list[x509.GeneralName] = []
    for host in hosts:
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(host)))
        except ValueError:
            names.append(x509.DNSName(host))
    return names


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )
