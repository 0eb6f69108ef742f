"""Certificates for tests: an authority and what it signs, by the command openssl."""
import subprocess
import time

CONFIG = """
[ca]
default_ca = here
[here]
dir = {folder}
database = {folder}/index.txt
serial = {folder}/serial
new_certs_dir = {folder}
default_md = sha256
policy = any
unique_subject = no
default_crl_days = 30
[any]
commonName = supplied
[req]
distinguished_name = name
[name]
"""
DAY = 86400


def stamp(seconds):
    return time.strftime("%y%m%d%H%M%SZ", time.gmtime(time.time() + seconds))


class Authority:
    def __init__(self, folder, name="authority"):
        self.folder = folder / name
        self.folder.mkdir()
        (self.folder / "index.txt").touch()
        (self.folder / "serial").write_text("1000\n")
        (self.folder / "config").write_text(CONFIG.format(folder=self.folder))
        self.certificate, self.key = self.folder / "ca.pem", self.folder / "ca.key"
        self.openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", self.key, "-out", self.certificate, "-subj", f"/CN={name}",
                     "-days", "30", "-addext", "basicConstraints=critical,CA:true")

    def openssl(self, *words):
        subprocess.run(["openssl", *map(str, words)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                       env={"OPENSSL_CONF": str(self.folder / "config"), "PATH": "/usr/bin:/bin"} if words[0] == "ca" else None)

    def issue(self, name, host="IP:127.0.0.1", begins=-DAY, ends=DAY, kind="rsa:2048"):
        """The paths of a certificate and its key."""
        base = self.folder / name
        certificate, key, request, extra = (base.with_suffix(s) for s in (".pem", ".key", ".csr", ".ext"))
        extra.write_text(f"subjectAltName={host}\nbasicConstraints=CA:false\n")
        self.openssl("req", "-newkey", kind, "-nodes", "-keyout", key, "-out", request, "-subj", f"/CN={name}")
        self.openssl("ca", "-batch", "-config", self.folder / "config", "-cert", self.certificate, "-keyfile", self.key, "-in", request,
                     "-out", certificate, "-notext", "-startdate", stamp(begins), "-enddate", stamp(ends), "-extfile", extra)
        return certificate, key

    def seed(self, key):
        """The 32 bytes of an Ed25519 key."""
        done = subprocess.run(["openssl", "pkey", "-in", str(key), "-outform", "DER"], check=True, stdout=subprocess.PIPE)
        return done.stdout[-32:]

    def revoke(self, certificate):
        """The path of the list of revoked certificates."""
        both = ["-config", self.folder / "config", "-cert", self.certificate, "-keyfile", self.key]
        self.openssl("ca", *both, "-revoke", certificate)
        self.openssl("ca", *both, "-gencrl", "-out", self.folder / "crl.pem")
        return self.folder / "crl.pem"
