"""Sessions, from dl-protocol(7): both sides of a Noise_IK handshake and the
sealing of frames. Pure but for randomness: bytes in, bytes out."""
import hashlib
import hmac
import struct

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import (
    X25519PrivateKey, X25519PublicKey)
from cryptography.hazmat.primitives.ciphers.aead import (
    AESGCM, ChaCha20Poly1305)
from cryptography.hazmat.primitives.serialization import (
    Encoding, PublicFormat)

# By suite: the cipher, and how a nonce looks after its four zero bytes.
SUITES = {"AESGCM": (AESGCM, ">Q"), "ChaChaPoly": (ChaCha20Poly1305, "<Q")}
REKEY_EVERY = 1 << 20


class Bad(Exception):
    """It does not open."""


def public_key(private):
    key = X25519PrivateKey.from_private_bytes(private).public_key()
    return key.public_bytes(Encoding.Raw, PublicFormat.Raw)


def dh(private, public):
    return X25519PrivateKey.from_private_bytes(private).exchange(
        X25519PublicKey.from_public_bytes(public))


def mac1(responder, prologue, message):
    key = hashlib.blake2b(b"dl-tools mac1" + responder, digest_size=32)
    return hashlib.blake2b(prologue + message, key=key.digest(),
                           digest_size=16).digest()


class Cipher:
    """One direction: a key and a counter."""

    def __init__(self, suite, key):
        self.suite, self.key, self.count = suite, key, 0

    def run(self, way, count, data, ad):
        cipher, form = SUITES[self.suite]
        nonce = bytes(4) + struct.pack(form, count)
        try:
            return getattr(cipher(self.key), way)(nonce, data, ad)
        except InvalidTag as e:
            raise Bad("it does not open") from e

    def next(self, way, data, ad):
        out = self.run(way, self.count, data, ad)
        self.count += 1
        if self.count % REKEY_EVERY == 0:
            self.key = self.run("encrypt", 2**64 - 1, bytes(32), b"")[:32]
        return out

    def seal(self, data, ad=b""):
        return self.next("encrypt", data, ad)

    def open(self, data, ad=b""):
        return self.next("decrypt", data, ad)


class Handshake:
    """Noise_IK as its initiator: e, es, s, ss; then e, ee, se."""

    def __init__(self, suite, private, responder, prologue, ephemeral):
        name = f"Noise_IK_25519_{suite}_BLAKE2b".encode()
        self.suite, self.private, self.responder = suite, private, responder
        self.ephemeral = ephemeral
        self.hash = self.chain = name.ljust(64, b"\0")
        self.cipher = None
        self.mix_hash(prologue)
        self.mix_hash(responder)

    def mix_hash(self, data):
        self.hash = hashlib.blake2b(self.hash + data).digest()

    def derive(self, secret):
        """The chain and a key, from the chain and a secret."""
        def mac(key, data):
            return hmac.new(key, data, hashlib.blake2b).digest()
        mixed = mac(self.chain, secret)
        first = mac(mixed, b"\x01")
        return first, mac(mixed, first + b"\x02")

    def mix_key(self, secret):
        self.chain, key = self.derive(secret)
        self.cipher = Cipher(self.suite, key[:32])

    def seal(self, data):
        out = self.cipher.seal(data, self.hash)
        self.mix_hash(out)
        return out

    def open(self, data):
        out = self.cipher.open(data, self.hash)
        self.mix_hash(data)
        return out

    def first(self, payload=b""):
        e = public_key(self.ephemeral)
        self.mix_hash(e)
        self.mix_key(dh(self.ephemeral, self.responder))
        s = self.seal(public_key(self.private))
        self.mix_key(dh(self.private, self.responder))
        return e + s + self.seal(payload)

    def second(self, message):
        e = message[:32]
        self.mix_hash(e)
        self.mix_key(dh(self.ephemeral, e))
        self.mix_key(dh(self.private, e))
        return self.open(message[32:])

    def split(self):
        """The ciphers to send with and to receive with."""
        return [Cipher(self.suite, key[:32]) for key in self.derive(b"")]


class Answer(Handshake):
    """The same as its responder."""

    def __init__(self, suite, private, prologue, ephemeral):
        super().__init__(suite, private, public_key(private), prologue,
                         ephemeral)

    def first(self, message):
        self.theirs = message[:32]
        self.mix_hash(self.theirs)
        self.mix_key(dh(self.private, self.theirs))
        self.client = self.open(message[32:80])
        self.mix_key(dh(self.private, self.client))
        return self.open(message[80:])

    def second(self, payload=b""):
        e = public_key(self.ephemeral)
        self.mix_hash(e)
        self.mix_key(dh(self.ephemeral, self.theirs))
        self.mix_key(dh(self.ephemeral, self.client))
        return e + self.seal(payload)

    def split(self):
        return super().split()[::-1]
