"""The package in a fresh Debian 12: installed, served, purged, with nothing left; and the container file's stages,
replayed instruction by instruction in such systems, as there is no Docker here. Minutes, and packages from the network:
ctest -L long, as root."""
import glob, http.client, json, os, re, shlex, shutil, signal, socket, subprocess, sys, tempfile, time, unittest

from debian_root import Root, reason_against
from weir_server import SOURCE, WEIR, eventually

BUILD = os.path.dirname(WEIR)
CHAT = {"messages": [{"role": "user", "content": "Tell me a story."}], "max_tokens": 4}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def request(port, method, path, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(method, path, body and json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    result = answer.status, answer.read()
    connection.close()
    return result


class Running:
    """A program in a root that serves at a port until the block ends."""

    def __init__(self, root, words, port, user=None, environment=None, folder="/"):
        script = f"cd {folder}; exec " + shlex.join(words)
        self.process = subprocess.Popen(root.command(["/bin/sh", "-c", script], user),
                                        env=root.environment(environment),
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.port = port

    def __enter__(self):
        def answers():
            assert self.process.poll() is None, self.process.stdout.read()
            try:
                return request(self.port, "GET", "/ready")[0] == 200
            except OSError:
                return False
        eventually(answers, seconds=120, what="it serves")
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(60)
        finally:
            self.process.kill()
            self.process.stdout.close()


class Base(unittest.TestCase):
    def root(self):
        if reason := reason_against():
            self.skipTest(reason)
        return self.enterContext(Root())


class Package(Base):
    def build(self):
        """By cpack from this build, which must be one of Debian 12 to be installed there."""
        with open("/etc/os-release") as file:
            if 'VERSION_ID="12"' not in file.read():
                self.skipTest("the build is not of Debian 12")
        folder = self.enterContext(tempfile.TemporaryDirectory())
        done = subprocess.run(["cpack", "--config", BUILD + "/CPackConfig.cmake", "-B", folder], capture_output=True,
                              text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        (package,) = glob.glob(folder + "/weir_*.deb")
        return package

    def test_it_is_installed_serves_and_leaves_nothing(self):
        root = self.root()
        package = self.build()
        root.run("apt-get update -qq")
        before = root.files()
        known = root.run("dpkg-query -W -f '${Package}\\n'").split()
        root.copy(package, "/tmp/weir.deb")
        root.run("apt-get install -y -qq --no-install-recommends /tmp/weir.deb")

        # What is where, and whose.
        self.assertEqual(root.run("stat -c '%a %U %G' /etc/weir/keys /etc/weir/weir.conf /usr/bin/weir").split("\n")[:3],
                         ["640 root weir", "644 root root", "755 root root"])
        self.assertIn("/etc/weir/weir.conf", root.run("dpkg-query -W -f '${Conffiles}' weir"))
        depends = root.run("dpkg-query -W -f '${Depends}' weir")
        for library in ("libuv1", "libssl3", "libcurl4", "libpcre2-8-0", "liburing2", "libmimalloc2.0", "libc6"):
            self.assertIn(library, depends)
        for path in ("/usr/share/man/man1/weir.1", "/usr/share/bash-completion/completions/weir",
                     "/usr/share/zsh/vendor-completions/_weir",
                     "/usr/share/fish/vendor_completions.d/weir.fish", "/lib/systemd/system/weir.service",
                     "/lib/systemd/system/weir.socket",
                     "/usr/share/doc/weir/docs/packages.md", "/usr/share/doc/weir/examples/kubernetes/deployment.yaml"):
            self.assertEqual(root.run(f"ls {path} {path}.gz 2>/dev/null | wc -l").strip(), "1", path)
        self.assertRegex(root.run("weir --version"), r"^weir [0-9.]+ \(")
        # The service is enabled, as Debian's helper notes it; the socket is not.
        self.assertTrue(os.path.islink(root.path + "/etc/systemd/system/multi-user.target.wants/weir.service"))
        self.assertFalse(os.path.lexists(root.path + "/etc/systemd/system/sockets.target.wants/weir.socket"))

        # As the service's user, who reads the keys and may not change them.
        port = free_port()
        with Running(root, ["weir", "--config", "/etc/weir/weir.conf", "--port", str(port)], port, user="weir:weir"):
            status, body = request(port, "POST", "/v1/chat/completions", CHAT)
            self.assertEqual((status, json.loads(body)["usage"]["completion_tokens"]), (200, 4))
            self.assertIn("ok", root.run(f"weir health --port {port}"))
            loaded = root.run(f"weir-load --port {port} --clients 2 --requests 5 --output-tokens 4")
            self.assertIn("10 ok, 0 failed", loaded)
        self.assertIn("KEY name=alice", root.run("cat /etc/weir/keys", user="weir:weir"))
        self.assertIn("Permission denied", root.run("echo sk-mine >> /etc/weir/keys", user="weir:weir", check=False))
        self.assertIn("Permission denied", root.run("cat /etc/weir/keys", user="nobody:nogroup", check=False))

        # Changes survive another installation; nothing survives a purge.
        root.run("echo 'max-tokens = 7' >> /etc/weir/weir.conf; echo 'sk-mine name=me' >> /etc/weir/keys")
        root.run("dpkg --force-confold -i /tmp/weir.deb")
        self.assertIn("max-tokens = 7", root.run("cat /etc/weir/weir.conf"))
        self.assertIn("sk-mine", root.run("cat /etc/weir/keys"))
        root.run("install -d -o weir /var/cache/weir/huggingface; touch /var/cache/weir/huggingface/model; install -d "
                 "-o weir /var/lib/weir")
        root.run("apt-get remove -y -qq weir")
        self.assertIn("sk-mine", root.run("cat /etc/weir/keys"))
        root.run("apt-get purge -y -qq weir")
        new = [name for name in root.run("dpkg-query -W -f '${Package}\\n'").split() if name not in known]
        root.run("apt-get purge -y -qq --autoremove " + " ".join(new) if new else "true")
        self.assertEqual(root.run("getent passwd weir || true"), "")
        after = root.files()
        # What dpkg, ld and adduser write anew each time.
        written = re.compile(r"/etc/(ld\.so\.cache|.*-)|/var/cache/ldconfig/aux-cache|/usr/share/.*/__pycache__.*")
        left = sorted(path for path in after.keys() - before.keys() if not written.fullmatch(path))
        self.assertEqual(left, [])
        print("installed, served and purged; packages that came with it:", " ".join(new))


class Container(Base):
    """A small part of what Docker does with a container file: enough for ours."""

    def instructions(self):
        with open(SOURCE + "/packaging/container/Dockerfile") as file:
            text = re.sub(r"^#.*\n", "", file.read(), flags=re.M).replace("\\\n", " ")
        return [line.split(None, 1) for line in text.splitlines() if line.strip()]

    def sources(self):
        """The checkout as Docker would see it: what git knows or would know."""
        folder = self.enterContext(tempfile.TemporaryDirectory())
        names = subprocess.run(["git", "-C", SOURCE, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                               capture_output=True,
                               text=True, check=True).stdout.split("\0")
        for name in filter(None, names):
            if os.path.lexists(f"{SOURCE}/{name}"):
                os.makedirs(os.path.dirname(f"{folder}/{name}"), exist_ok=True)
                shutil.copy2(f"{SOURCE}/{name}", f"{folder}/{name}", follow_symlinks=False)
        return folder

    def replay(self):
        context, stages = self.sources(), {}
        for word, rest in self.instructions():
            if word == "FROM":
                image = re.fullmatch(r"debian:bookworm(-slim)?(?: AS (\w+))?", rest)
                self.assertTrue(image, rest)
                state = {"root": self.root(), "environment": {}, "folder": "/", "user": None}
                stages[image.group(2)] = state
                self.share_ccache(state)
            elif word == "COPY":
                stage = re.match(r"--from=(\w+) ", rest)
                source, target = rest[stage.end():].split() if stage else rest.split()
                base = stages[stage.group(1)]["root"].path if stage else context + "/"
                state["root"].copy(os.path.normpath(base + source), os.path.join(state["folder"], target))
            elif word == "RUN":
                state["root"].run(rest, environment=state["environment"], folder=state["folder"])
            elif word == "ENV":
                state["environment"].update(part.split("=", 1) for part in shlex.split(rest))
            elif word == "ARG":
                state["environment"][rest.split("=")[0]] = rest.partition("=")[2]
            elif word == "WORKDIR":
                state["folder"] = rest
                os.makedirs(state["root"].path + rest, exist_ok=True)
            elif word == "USER":
                state["user"] = rest
            elif word in ("HEALTHCHECK", "ENTRYPOINT"):
                state[word] = json.loads(rest[rest.index("["):])
            else:
                self.assertIn(word, ("VOLUME", "EXPOSE"))
        return state

    def share_ccache(self, state):
        """What was compiled before need not be again, where the test says where that is."""
        if folder := os.environ.get("WEIR_CCACHE"):
            target = state["root"].path + "/ccache"
            os.makedirs(target)
            state["root"].mount("--bind", folder, target)
            state["environment"].update(CCACHE_DIR="/ccache", CCACHE_BASEDIR="/src", CCACHE_NOHASHDIR="1")

    def test_its_stages_build_an_image_that_serves_as_nobody_in_particular(self):
        image = self.replay()
        root, user, environment = image["root"], image["user"], image["environment"]
        self.assertEqual(user, "10001:10001")
        self.assertEqual(environment["WEIR_HOST"], "0.0.0.0")
        self.assertEqual(root.run("id -u", user=user).strip(), "10001")
        self.assertEqual(root.run("command -v g++ cmake ccache || true"), "", "the image has what built it")
        port = free_port()
        environment = {**environment, "WEIR_PORT": str(port)}
        self.assertNotEqual(subprocess.run(root.command(image["HEALTHCHECK"], user), env=root.environment(environment),
                                           capture_output=True).returncode, 0)
        with Running(root, image["ENTRYPOINT"], port, user, environment, image["folder"]):
            self.assertEqual(request(port, "POST", "/v1/chat/completions", CHAT)[0], 200)
            subprocess.run(root.command(image["HEALTHCHECK"], user), env=root.environment(environment), check=True,
                           stdout=subprocess.DEVNULL)
            # Only the volume is the user's.
            writable = root.run("find / -xdev -writable -not -type l -not -path '/tmp*' -not -path '/var/tmp*' -not "
                                "-path '/dev/*' "
                                "-not -path '/proc/*' -not -path '/run/lock*' 2>/dev/null || true", user=user).split()
            self.assertEqual([path for path in writable if not path.startswith("/cache")], [])
        print("the image's packages:", len(root.run("dpkg-query -W -f '${Package}\\n'").split()))


if __name__ == "__main__":
    unittest.main(verbosity=2)
