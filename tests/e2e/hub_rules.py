"""The rules by which huggingface_hub keeps models in its cache, in few lines: what it would lay down, and where it
would find a file without a network. Standard library only."""
import hashlib, json, os, re

from mock_hub import File


def model_folder(cache, model_id):
    return os.path.join(cache, "models--" + model_id.replace("/", "--"))


def lay_down(cache, model_id, files, revision="main", tree=True):
    """As snapshot_download() leaves a model; the commit."""
    files = {path: File(path, data) for path, data in files.items()}
    commit = hashlib.sha1("".join(sorted(files)).encode()).hexdigest()
    folder = model_folder(cache, model_id)
    for path, file in files.items():
        blob = os.path.join(folder, "blobs", file.etag)
        pointer = os.path.join(folder, "snapshots", commit, path)
        for each in (blob, pointer):
            os.makedirs(os.path.dirname(each), exist_ok=True)
        with open(blob, "wb") as out:
            out.write(file.data)
        os.symlink(os.path.relpath(blob, os.path.dirname(pointer)), pointer)
    os.makedirs(os.path.join(folder, "refs"), exist_ok=True)
    with open(os.path.join(folder, "refs", revision), "w") as out:
        out.write(commit)
    if tree:
        entries = {path: {"size": f.size, "blob_id": f.oid,
                          **({"lfs_sha256": f.sha256, "lfs_size": f.size} if f.large else {})}
                   for path, f in files.items()}
        os.makedirs(os.path.join(folder, "trees"), exist_ok=True)
        with open(os.path.join(folder, "trees", f"{commit}.json"), "w") as out:
            json.dump({"format_version": 1, "files": entries}, out, indent=1)
    return commit


def find(cache, model_id, path, revision="main"):
    """Where hf_hub_download(local_files_only=True) finds a file, or None."""
    folder = model_folder(cache, model_id)
    if not re.fullmatch(r"[0-9a-f]{40}", revision):
        ref = os.path.join(folder, "refs", revision)
        if not os.path.isfile(ref):
            return None
        with open(ref) as text:
            revision = text.read()
    pointer = os.path.join(folder, "snapshots", revision, path)
    return pointer if os.path.exists(pointer) else None


def missing(cache, model_id, wanted, revision="main"):
    """What snapshot_download(local_files_only=True, allow_patterns=wanted) would miss: paths of its list of files that
    are wanted and not there. None: there is no list."""
    with open(os.path.join(model_folder(cache, model_id), "refs", revision)) as text:
        commit = text.read()
    tree = os.path.join(model_folder(cache, model_id), "trees", f"{commit}.json")
    if not os.path.exists(tree):
        return None
    with open(tree) as text:
        listed = json.load(text)
    assert listed["format_version"] == 1, listed
    for path, entry in listed["files"].items():
        assert isinstance(entry["size"], int) and re.fullmatch(r"[0-9a-f]{40}", entry["blob_id"]), (path, entry)
    return [path for path in listed["files"] if wanted(path) and not find(cache, model_id, path, revision)]


def wrong_blobs(cache, model_id):
    """Blobs whose names are not their hashes."""
    folder, wrong = os.path.join(model_folder(cache, model_id), "blobs"), []
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), "rb") as file:
            data = File(name, file.read())
        if name != (data.sha256 if len(name) == 64 else data.sha1):
            wrong.append(name)
    return wrong
