"""A Debian 12 of its own in a folder, for tests that install into it. Needs root. WEIR_DEBIAN_ROOT names one that is
there already, which is copied; else debootstrap makes it. Packages come from where this system's apt takes them."""
import os, shutil, subprocess, tempfile


def reason_against():
    """Why there can be none here; empty: there can."""
    if os.getuid() != 0:
        return "only root can make a root of another system"
    if not os.environ.get("WEIR_DEBIAN_ROOT") and not shutil.which("debootstrap",
                                                                   path=os.environ["PATH"] + ":/usr/sbin"):
        return "debootstrap is not installed, and WEIR_DEBIAN_ROOT names no Debian 12"
    with open("/proc/self/status") as status:
        capabilities = int(next(line for line in status if line.startswith("CapEff:")).split()[1], 16)
    return "" if capabilities >> 21 & 1 else "this root may not mount (CAP_SYS_ADMIN)"


def mirror():
    """From where this system's apt takes Debian 12; empty: from nowhere, and debootstrap has one of its own."""
    lines = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME)", "Created-By: Packages"],
                           capture_output=True, text=True).stdout.splitlines()
    return next((line.split()[0] for line in lines if line.endswith(" bookworm")), "")


class Root:
    """with Root() as root: root.run("apt-get install ...")"""

    MOUNTS = (("proc", "proc", "proc"), ("tmpfs", "tmpfs", "dev/shm"), ("devpts", "devpts", "dev/pts"))
    DEVICES = ("null", "zero", "full", "random", "urandom", "tty")

    def __enter__(self):
        self.parent = tempfile.mkdtemp(prefix="weir-debian-", dir=os.environ.get("WEIR_DEBIAN_TMP", "/var/tmp"))
        self.path = self.parent + "/root"
        self.mounted = []
        try:
            self.begin()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for target in reversed(self.mounted):
            subprocess.run(["umount", "-l", target], check=True)
        shutil.rmtree(self.parent)

    def begin(self):
        if known := os.environ.get("WEIR_DEBIAN_ROOT"):
            # What is mounted there stays there.
            subprocess.run(["cp", "-a", "-x", "--reflink=auto", known, self.path], check=True)
        else:
            subprocess.run(["debootstrap", "--variant=minbase", "bookworm", self.path, *filter(None, [mirror()])],
                           check=True,
                           stdout=subprocess.DEVNULL,
                           env={**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"})
        shutil.rmtree(self.path + "/etc/apt")
        shutil.copytree("/etc/apt", self.path + "/etc/apt", symlinks=True)
        if os.path.exists("/usr/share/keyrings"):
            shutil.copytree("/usr/share/keyrings", self.path + "/usr/share/keyrings", symlinks=True, dirs_exist_ok=True)
        for name in ("resolv.conf", "hosts"):
            if os.path.exists("/etc/" + name):
                shutil.copyfile("/etc/" + name, f"{self.path}/etc/{name}")
        # Without an init there is nothing to start.
        with open(self.path + "/usr/sbin/policy-rc.d", "w") as file:
            file.write("#!/bin/sh\nexit 101\n")
        os.chmod(self.path + "/usr/sbin/policy-rc.d", 0o755)
        for device in self.DEVICES:
            target = f"{self.path}/dev/{device}"
            if not os.path.exists(target):
                open(target, "w").close()
            self.mount("--bind", "/dev/" + device, target)
        for kind, source, target in self.MOUNTS:
            os.makedirs(f"{self.path}/{target}", exist_ok=True)
            self.mount("-t", kind, source, f"{self.path}/{target}")

    def mount(self, *arguments):
        subprocess.run(["mount", *arguments], check=True)
        self.mounted.append(arguments[-1])

    def command(self, words, user=None):
        return ["chroot", *([f"--userspec={user}"] if user else []), self.path, *words]

    def environment(self, more=None):
        return {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root",
                "LANG": "C.UTF-8",
                "DEBIAN_FRONTEND": "noninteractive", **(more or {})}

    def run(self, script, user=None, environment=None, folder="/", check=True):
        """What it prints on both outputs."""
        done = subprocess.run(self.command(["/bin/sh", "-ec", f"cd {folder}\n{script}"], user),
                              env=self.environment(environment),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if check and done.returncode != 0:
            raise AssertionError(f"{script}: {done.returncode}\n{done.stdout[-6000:]}")
        return done.stdout

    def copy(self, source, target):
        """A file or a folder's contents, as COPY of a container file does it."""
        target = self.path + target
        if os.path.isdir(source):
            shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
            return
        if target.endswith("/"):
            target += os.path.basename(source)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy2(source, target)

    def files(self):
        """Of the system, with type, mode and owner; not what apt and the kernel keep beside."""
        found = {}
        beside = ("/proc", "/dev", "/sys", "/tmp", "/run", "/var/cache/apt", "/var/lib/apt", "/var/log",
                  "/var/cache/debconf", "/var/lib/dpkg")
        for folder, folders, names in os.walk(self.path):
            inside = folder[len(self.path):] or "/"
            folders[:] = [name for name in folders if os.path.join(inside, name) not in beside]
            for name in folders + names:
                info = os.lstat(os.path.join(folder, name))
                found[os.path.join(inside, name)] = (oct(info.st_mode), info.st_uid, info.st_gid)
        return found
