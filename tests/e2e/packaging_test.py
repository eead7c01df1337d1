"""The files of packaging/: manifests have the kinds and fields that their APIs know, dashboard and alerts ask for
figures that a server gives, what is configured are options that there are, and shells and `man` read what is made for
them."""
import json, os, re, shutil, subprocess, tempfile, unittest

import prometheus
from weir_server import SOURCE, WEIR, Server

try:
    import yaml
except ImportError:
    yaml = None

PACKAGING = os.path.join(SOURCE, "packaging")
MANUAL = os.path.join(os.path.dirname(WEIR), "weir-manual")

# What may stand where: a type; a dict of fields, each of which is one of these; a list of one of these; MAP: names of
# the author's own to texts; ANY: not looked into. What is needed must be there.
MAP, ANY, COUNT, PORT = object(), object(), (int,), (int, str)


def need(what):
    return ("needed", what)


METADATA = need({"name": need(str), "namespace": str, "labels": MAP, "annotations": MAP})
SELECTOR = {"matchLabels": MAP, "matchExpressions": [{"key": need(str), "operator": need(str), "values": [str]}]}
SOURCE_OF_VALUE = {"secretKeyRef": {"name": need(str), "key": need(str), "optional": bool},
                   "configMapKeyRef": {"name": need(str), "key": need(str)}}
PROBE = {"httpGet": {"path": need(str), "port": need(PORT), "scheme": str}, "initialDelaySeconds": COUNT,
         "periodSeconds": COUNT,
         "timeoutSeconds": COUNT, "failureThreshold": COUNT, "successThreshold": COUNT}
AMOUNTS = {"cpu": str, "memory": str}
CONTAINER = {
    "name": need(str), "image": need(str), "args": [str], "command": [str],
    "ports": [{"name": str, "containerPort": need(COUNT), "protocol": str}],
    "env": [{"name": need(str), "value": str, "valueFrom": SOURCE_OF_VALUE}],
    "envFrom": [{"configMapRef": {"name": need(str)}, "secretRef": {"name": need(str)}}],
    "startupProbe": PROBE, "livenessProbe": PROBE, "readinessProbe": PROBE,
    "lifecycle": {"preStop": {"exec": {"command": [str]}}},
    "resources": need({"requests": AMOUNTS, "limits": AMOUNTS}),
    "securityContext": need({"allowPrivilegeEscalation": need(bool), "readOnlyRootFilesystem": need(bool),
                             "capabilities": need({"drop": [str]})}),
    "volumeMounts": [{"name": need(str), "mountPath": need(str), "readOnly": bool, "subPath": str}],
}
POD = {
    "serviceAccountName": str, "automountServiceAccountToken": bool, "enableServiceLinks": bool,
    "terminationGracePeriodSeconds": COUNT,
    "securityContext": need({"runAsNonRoot": need(bool), "runAsUser": COUNT, "runAsGroup": COUNT, "fsGroup": COUNT,
                             "fsGroupChangePolicy": str,
                             "seccompProfile": need({"type": need(str), "localhostProfile": str})}),
    "initContainers": [CONTAINER], "containers": need([CONTAINER]),
    "volumes": [{"name": need(str), "persistentVolumeClaim": {"claimName": need(str)},
                 "emptyDir": {"sizeLimit": str, "medium": str},
                 "secret": {"secretName": need(str), "defaultMode": COUNT,
                            "items": [{"key": need(str), "path": need(str)}]}}],
    "topologySpreadConstraints": [{"maxSkew": need(COUNT), "topologyKey": need(str), "whenUnsatisfiable": need(str),
                                   "labelSelector": SELECTOR}],
}
PEER = {"podSelector": SELECTOR, "namespaceSelector": SELECTOR}
POLICY_PORT = {"protocol": str, "port": PORT}
KINDS = {
    ("kustomize.config.k8s.io/v1beta1", "Kustomization"): {
        "namespace": str, "resources": need([str]), "labels": [{"pairs": MAP, "includeSelectors": bool}],
        "images": [{"name": need(str), "newName": str, "newTag": str}]},
    ("v1", "Namespace"): {"metadata": METADATA},
    ("v1", "ServiceAccount"): {"metadata": METADATA, "automountServiceAccountToken": bool},
    ("v1", "ConfigMap"): {"metadata": METADATA, "data": need(MAP)},
    ("v1", "Secret"): {"metadata": METADATA, "type": str, "stringData": need(MAP)},
    ("v1", "PersistentVolumeClaim"): {"metadata": METADATA, "spec": need({
        "accessModes": need([str]), "storageClassName": str,
        "resources": need({"requests": need({"storage": need(str)})})})},
    ("v1", "Service"): {"metadata": METADATA, "spec": need({
        "selector": need(MAP), "type": str,
        "ports": need([{"name": str, "port": need(COUNT), "targetPort": PORT, "protocol": str}])})},
    ("apps/v1", "Deployment"): {"metadata": METADATA, "spec": need({
        "replicas": COUNT, "selector": need(SELECTOR),
        "strategy": {"type": str, "rollingUpdate": {"maxUnavailable": PORT, "maxSurge": PORT}},
        "template": need({"metadata": {"labels": MAP, "annotations": MAP}, "spec": need(POD)})})},
    ("policy/v1", "PodDisruptionBudget"): {"metadata": METADATA,
                                           "spec": need({"maxUnavailable": PORT, "minAvailable": PORT,
                                                         "selector": need(SELECTOR)})},
    ("networking.k8s.io/v1", "NetworkPolicy"): {"metadata": METADATA, "spec": need({
        "podSelector": need(SELECTOR), "policyTypes": [str], "ingress": [{"from": [PEER], "ports": [POLICY_PORT]}],
        "egress": [{"to": [PEER], "ports": [POLICY_PORT]}]})},
    ("monitoring.coreos.com/v1", "PodMonitor"): {"metadata": METADATA, "spec": need({
        "selector": need(SELECTOR), "podMetricsEndpoints": need([{
            "port": str, "path": str, "interval": str, "scheme": str,
            "bearerTokenSecret": {"name": need(str), "key": need(str)}}])})},
    ("keda.sh/v1alpha1", "ScaledObject"): {"metadata": METADATA, "spec": need({
        "scaleTargetRef": need({"name": need(str), "kind": str, "apiVersion": str}), "minReplicaCount": COUNT,
        "maxReplicaCount": COUNT,
        "cooldownPeriod": COUNT, "pollingInterval": COUNT,
        "triggers": need([{"type": need(str), "metadata": need(MAP)}])})},
    ("gateway.networking.k8s.io/v1", "Gateway"): {"metadata": METADATA, "spec": need({
        "gatewayClassName": need(str), "listeners": need([{"name": need(str), "protocol": need(str),
                                                           "port": need(COUNT), "hostname": str,
                                                          "allowedRoutes": {"namespaces": {"from": str}}}])})},
    ("gateway.networking.k8s.io/v1", "HTTPRoute"): {"metadata": METADATA, "spec": need({
        "parentRefs": need([{"name": need(str), "namespace": str, "sectionName": str}]), "hostnames": [str],
        "rules": need([{"matches": [{"path": {"type": str, "value": str}}],
                        "timeouts": {"request": str, "backendRequest": str},
                        "backendRefs": [{"group": str, "kind": str, "name": need(str), "namespace": str, "port": COUNT,
                                         "weight": COUNT}]}])})},
    ("inference.networking.k8s.io/v1", "InferencePool"): {"metadata": METADATA, "spec": need({
        "selector": need({"matchLabels": need(MAP)}), "targetPorts": need([{"number": need(COUNT)}]),
        "endpointPickerRef": need({"group": str, "kind": str, "name": need(str), "port": {"number": need(COUNT)},
                                   "failureMode": str})})},
}

ADDRESS = {"socket_address": need({"address": need(str), "port_value": need(COUNT)})}
ENVOY_TYPED = {
    "envoy.filters.network.http_connection_manager": {
        "@type": need(str), "stat_prefix": need(str), "stream_idle_timeout": str,
        "http_filters": need([{"name": need(str), "typed_config": ANY}]),
        "route_config": need({"name": str, "virtual_hosts": need([{
            "name": need(str), "domains": need([str]), "routes": need([{
                "match": need({"prefix": str, "path": str}),
                "route": need({
                    "cluster": need(str), "timeout": str, "idle_timeout": str,
                    "hash_policy": [{"header": {"header_name": need(str)}, "terminal": bool,
                                     "connection_properties": {"source_ip": bool}}],
                    "retry_policy": {"retry_on": need(str), "retriable_status_codes": [int], "num_retries": COUNT,
                                     "retry_host_predicate": [{"name": need(str),
                                                               "typed_config": {"@type": need(str)}}],
                                     "host_selection_retry_max_attempts": COUNT}})}])}])})},
    "envoy.filters.http.router": {"@type": need(str)},
}
ENVOY = {"static_resources": need({
    "listeners": need([{"name": str, "address": need(ADDRESS),
                        "filter_chains": need([{"filters": need([{"name": need(str), "typed_config": need(ANY)}])}])}]),
    "clusters": need([{
        "name": need(str), "type": str, "connect_timeout": str, "lb_policy": str,
        "health_checks": [{"timeout": need(str), "interval": need(str), "unhealthy_threshold": COUNT,
                           "healthy_threshold": COUNT,
                           "http_health_check": {"path": need(str), "host": str}}],
        "load_assignment": need({"cluster_name": need(str),
                                 "endpoints": need([{"lb_endpoints": need([{"endpoint": {"address": need(ADDRESS)}}])}])})}])})}

RULES = {"groups": need([{"name": need(str), "interval": str, "rules": need([{
    "alert": need(str), "expr": need(str), "for": str, "labels": need({"severity": need(str)}),
    "annotations": need({"summary": need(str), "description": need(str)})}])}])}

COMPOSE = {"services": need({"weir": need({
    "build": {"context": need(str), "dockerfile": str}, "image": str, "command": [str], "ports": [str],
    "volumes": [str], "environment": MAP,
    "read_only": bool, "tmpfs": [str], "cap_drop": [str], "security_opt": [str], "stop_grace_period": str})}),
           "volumes": ANY}

DATASOURCE = {"type": need(str), "uid": need(str)}
DASHBOARD = {
    "uid": need(str), "title": need(str), "tags": [str], "schemaVersion": need(COUNT), "version": COUNT,
    "editable": bool, "refresh": str,
    "timezone": str, "time": {"from": str, "to": str},
    "templating": {"list": [{"name": need(str), "label": str, "type": need(str), "query": need(str),
                             "datasource": DATASOURCE, "refresh": COUNT,
                             "includeAll": bool, "multi": bool, "current": MAP}]},
    "panels": need([{
        "id": need(COUNT), "title": need(str), "type": need(str), "description": str, "datasource": need(DATASOURCE),
        "options": ANY,
        "gridPos": need({"x": COUNT, "y": COUNT, "w": COUNT, "h": COUNT}),
        "fieldConfig": {"defaults": {"unit": str, "min": COUNT, "max": COUNT}, "overrides": [ANY]},
        "targets": need([{"refId": need(str), "expr": need(str), "legendFormat": str, "datasource": DATASOURCE}])}])}


def faults(value, expected, where):
    """What is wrong, a line each."""
    if isinstance(expected, tuple) and len(expected) == 2 and expected[0] == "needed":
        expected = expected[1]
    if expected is ANY:
        return []
    if expected is MAP:
        if isinstance(value, dict) and all(isinstance(k, str) and isinstance(v, str) for k, v in value.items()):
            return []
        return [f"{where}: expected names to texts, found {value!r}"]
    if isinstance(expected, dict):
        if not isinstance(value, dict):
            return [f"{where}: expected fields, found {value!r}"]
        found = [f"{where}.{name}: there is no such field" for name in value if name not in expected]
        for name, kind in expected.items():
            if name in value:
                found += faults(value[name], kind, f"{where}.{name}")
            elif isinstance(kind, tuple) and kind and kind[0] == "needed":
                found.append(f"{where}.{name}: is missing")
        return found
    if isinstance(expected, list):
        if not isinstance(value, list) or not value and where.count("overrides") == 0:
            return [f"{where}: expected a list, found {value!r}"]
        return [fault for i, item in enumerate(value) for fault in faults(item, expected[0], f"{where}[{i}]")]
    if not isinstance(value, expected) or isinstance(value, bool) and expected != bool:
        return [f"{where}: expected {expected}, found {value!r}"]
    return []


def files(*suffixes):
    return sorted(os.path.join(folder, name) for folder, _,
                  names in os.walk(PACKAGING) for name in names if name.endswith(suffixes))


def read(path):
    with open(path) as file:
        return file.read()


def documents(path):
    return [document for document in yaml.safe_load_all(read(path)) if document is not None]


@unittest.skipUnless(yaml, "python3-yaml is not installed")
class Manifests(unittest.TestCase):
    tables = {"proxies/envoy.yaml": ENVOY, "monitoring/alerts.yaml": RULES, "container/compose.yaml": COMPOSE}

    def test_every_kind_and_every_field_is_known(self):
        kinds = set()
        for path in files(".yaml", ".yml"):
            name = os.path.relpath(path, PACKAGING)
            for document in documents(path):
                if name in self.tables:
                    self.assertEqual(faults(document, self.tables[name], name), [])
                    continue
                kind = document.pop("apiVersion"), document.pop("kind")
                self.assertIn(kind, KINDS, name)
                kinds.add(kind)
                self.assertEqual(faults(document, KINDS[kind], f"{name} {kind[1]}"), [])
        self.assertEqual(kinds, set(KINDS), "the table has kinds that no file has")
        self.assertEqual(faults(json.loads(read(f"{PACKAGING}/monitoring/grafana.json")), DASHBOARD, "grafana.json"),
                         [])

    def test_the_table_sees_what_is_wrong(self):
        service = {"metadata": {"name": "weir"}, "spec": {"selector": {"a": "b"}, "ports": [{"port": 80}]}}
        table = KINDS["v1", "Service"]
        self.assertEqual(faults(service, table, "s"), [])
        for wrong, fault in (({"spec": {**service["spec"], "selectors": {}}},
                              "s.spec.selectors: there is no such field"),
                             ({"spec": {"selector": {"a": 1}, "ports": [{"port": 80}]}},
                              "s.spec.selector: expected names to texts"),
                             ({"spec": {"selector": {}, "ports": [{"port": "80"}]}}, "s.spec.ports[0].port: expected"),
                             ({"spec": {"selector": {}, "ports": [{}]}}, "s.spec.ports[0].port: is missing"),
                             ({"spec": {"selector": {}, "ports": []}}, "s.spec.ports: expected a list")):
            found = faults({**service, **wrong}, table, "s")
            self.assertEqual(len(found), 1, found)
            self.assertIn(fault, found[0])

    def test_the_parts_name_each_other(self):
        folder = f"{PACKAGING}/kubernetes"
        kustomization, = documents(f"{folder}/kustomization.yaml")
        self.assertEqual(sorted(kustomization["resources"]),
                         sorted(name for name in os.listdir(folder) if name != "kustomization.yaml"))
        parts = {document["kind"]: document for name in kustomization["resources"] for document in documents(f"{folder}/{name}")}
        pod = parts["Deployment"]["spec"]["template"]
        labels = {**pod["metadata"]["labels"], **kustomization["labels"][0]["pairs"]}
        selectors = [parts[kind]["spec"]["selector"] for kind in ("Deployment", "PodDisruptionBudget", "PodMonitor")]
        selectors += [parts["NetworkPolicy"]["spec"]["podSelector"],
                      {"matchLabels": parts["Service"]["spec"]["selector"]}]
        gateway = {document["kind"]: document for document in documents(f"{PACKAGING}/gateway/gateway.yaml")}
        pool = gateway["InferencePool"]
        for selector in selectors + [pool["spec"]["selector"]]:
            self.assertLessEqual(selector["matchLabels"].items(), labels.items())
        (container,) = pod["spec"]["containers"]
        (port,) = container["ports"]
        self.assertEqual({pool["spec"]["targetPorts"][0]["number"],
                          parts["NetworkPolicy"]["spec"]["ingress"][0]["ports"][0]["port"]}, {port["containerPort"]})
        self.assertEqual({parts["Service"]["spec"]["ports"][0]["targetPort"],
                          parts["PodMonitor"]["spec"]["podMetricsEndpoints"][0]["port"]}, {port["name"]})
        rule, = gateway["HTTPRoute"]["spec"]["rules"]
        self.assertEqual((rule["backendRefs"][0]["kind"], rule["backendRefs"][0]["name"]),
                         ("InferencePool", pool["metadata"]["name"]))
        self.assertEqual(parts["ScaledObject"]["spec"]["scaleTargetRef"]["name"],
                         parts["Deployment"]["metadata"]["name"])
        secrets = {volume["secret"]["secretName"]: volume["secret"]["items"] for volume in pod["spec"]["volumes"] if "secret" in volume}
        for name, items in secrets.items():
            self.assertEqual(name, parts["Secret"]["metadata"]["name"])
            for item in items:
                self.assertIn(item["key"], parts["Secret"]["stringData"])
        monitor = parts["PodMonitor"]["spec"]["podMetricsEndpoints"][0]["bearerTokenSecret"]
        self.assertEqual(monitor["name"], parts["Secret"]["metadata"]["name"])
        self.assertIn(monitor["key"], parts["Secret"]["stringData"])
        mounted = {mount["name"] for each in (container,
                                              *pod["spec"]["initContainers"]) for mount in each["volumeMounts"]}
        self.assertEqual(mounted, {volume["name"] for volume in pod["spec"]["volumes"]})
        # The time between SIGTERM and SIGKILL is enough for what happens in it.
        data = parts["ConfigMap"]["data"]
        asleep = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
        self.assertGreaterEqual(pod["spec"]["terminationGracePeriodSeconds"],
                                asleep + int(data["WEIR_DRAIN_DELAY"]) + int(data["WEIR_DRAIN_SECONDS"]) + 3)
        for each in (container, *pod["spec"]["initContainers"]):
            self.assertEqual(each["resources"]["requests"], each["resources"]["limits"])

    def test_variables_are_options_and_values_are_theirs(self):
        (config,) = documents(f"{PACKAGING}/kubernetes/configmap.yaml")
        with tempfile.NamedTemporaryFile("w") as keys:
            keys.write(documents(f"{PACKAGING}/kubernetes/secret.yaml")[0]["stringData"]["keys"])
            keys.flush()
            data = {**config["data"], "WEIR_API_KEY_FILE": keys.name}
            known = set(re.findall(r"`(WEIR_[A-Z_]+)`", read(f"{SOURCE}/docs/options.md")))
            self.assertLessEqual(data.keys(), known)
            del data["WEIR_MODEL"]  # It is fetched; here the built-in one does.
            with Server("--host", "127.0.0.1", environment=data) as server:
                self.assertEqual(server.request("GET", "/v1/models",
                                                headers={"Authorization": "Bearer replace-this-key"})[0], 200)
                self.assertEqual(server.request("GET", "/metrics",
                                                headers={"Authorization": "Bearer replace-this-key-too"})[0], 200)
                self.assertEqual(server.request("GET", "/v1/models")[0], 401)


class Figures(unittest.TestCase):
    """Dashboard, alerts and scaling rules name figures that a server gives."""
    FUNCTIONS = {"sum", "max", "min", "count", "rate", "increase", "histogram_quantile", "by", "le", "label_values"}
    LABELS = {"instance", "status", "version", "commit", "namespace"}

    def names(self, expression):
        text = re.sub(r'"[^"]*"', "", expression)
        text = re.sub(r"\[[^\]]*\]", "", text)
        text = re.sub(r"\{[^}]*\}", "", text)
        words = set(re.findall(r"[a-zA-Z_:][a-zA-Z0-9_:]*", text))
        return words - self.FUNCTIONS - self.LABELS - {"e"}

    @unittest.skipUnless(yaml, "python3-yaml is not installed")
    def test_each_is_in_metrics(self):
        expressions = []
        dashboard = json.loads(read(f"{PACKAGING}/monitoring/grafana.json"))
        for panel in dashboard["panels"]:
            expressions += [target["expr"] for target in panel["targets"]]
        for group in documents(f"{PACKAGING}/monitoring/alerts.yaml")[0]["groups"]:
            expressions += [rule["expr"] for rule in group["rules"]]
        for trigger in documents(f"{PACKAGING}/kubernetes/scaledobject.yaml")[0]["spec"]["triggers"]:
            expressions.append(trigger["metadata"]["query"])
        asked = {name for expression in expressions for name in self.names(expression)} - {"up"}  # Prometheus's own.
        self.assertGreater(len(asked), 20)

        given = set()
        chat = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 4}
        for options in ((),
                        ("--model", SOURCE + "/models/weir-tiny-moe", "--stream-experts", "--expert-memory", "12M")):
            with Server(*options) as server:
                server.post("/v1/chat/completions", chat)
                for family in prometheus.parse(server.get("/metrics").decode()).values():
                    given |= {name for name, _ in family.samples}
        self.assertEqual(asked - given, set())

    def test_panels_do_not_overlap(self):
        taken = set()
        for panel in json.loads(read(f"{PACKAGING}/monitoring/grafana.json"))["panels"]:
            place = panel["gridPos"]
            cells = {(x, y) for x in range(place["x"],
                                           place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
            self.assertFalse(cells & taken, panel["title"])
            self.assertLessEqual(place["x"] + place["w"], 24)
            taken |= cells


class Configuration(unittest.TestCase):
    def test_every_line_of_the_package_that_is_commented_out_is_an_option(self):
        lines = [line[1:] for line in read(f"{PACKAGING}/weir.conf").splitlines() if re.match(r"#[a-z-]+ = ", line)]
        self.assertGreaterEqual(len(lines), 5)
        with tempfile.NamedTemporaryFile("w") as file:
            # The server then looks for the model and the files: what it says last is no complaint about an option.
            file.write("\n".join(lines) + "\noffline = true\n")
            file.flush()
            done = subprocess.run([WEIR, "--config", file.name], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1, done.stderr)

    def test_as_it_is_installed_it_serves(self):
        with Server("--config", f"{PACKAGING}/weir.conf") as server:
            self.assertEqual(server.host, "127.0.0.1")
            self.assertIn(b"weir-tiny-moe", server.get("/v1/models"))

    def test_the_dockerfile_says_what_the_page_promises(self):
        text = read(f"{PACKAGING}/container/Dockerfile")
        instructions = re.findall(r"^([A-Z]+) ", text, re.M)
        self.assertEqual(instructions.count("FROM"), 2)
        self.assertLessEqual(set(instructions), {"FROM", "WORKDIR", "COPY", "RUN", "ARG", "ENV", "USER", "VOLUME",
                                                 "EXPOSE", "HEALTHCHECK", "ENTRYPOINT"})
        self.assertRegex(text, r"(?m)^USER 10001:10001$")
        self.assertRegex(text, r'(?m)^HEALTHCHECK .* CMD \["weir", "health"\]$')


class Health(unittest.TestCase):
    def ask(self, *options):
        return subprocess.run([WEIR, "health", *options], capture_output=True, text=True, timeout=60)

    def test_says_by_its_exit_status_whether_the_server_is_well(self):
        with Server("--host", "0.0.0.0", "--drain-delay", "20") as server:
            here = ("--host", "0.0.0.0", "--port", str(server.port))
            self.assertEqual(self.ask(*here).returncode, 0, self.ask(*here).stderr)
            server.process.terminate()
            for _ in range(200):
                done = self.ask(*here)
                if done.returncode:
                    break
            self.assertEqual(done.returncode, 1)
            self.assertIn("expected 200 of /health; found 503", done.stderr)
        done = self.ask(*here)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"127.0.0.1 port {server.port}: ", done.stderr)


@unittest.skipUnless(os.path.exists(MANUAL), "weir-manual is not built")
class Manual(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        subprocess.run([MANUAL, cls.folder.name], check=True)
        rows = re.findall(r"^\| `(?:-[a-z]+, )?(--[a-z-]+)[^|]*\|.*\| ([a-z, ]+) \|$",
                          read(f"{SOURCE}/docs/options.md"), re.M)
        cls.commands_of = {}
        for flag, commands in rows:  # A flag may be one option here and another there.
            cls.commands_of.setdefault(flag, []).extend(commands.split(", "))
        assert len(rows) > 100

    def test_the_page_has_every_option_and_command(self):
        groff = shutil.which("groff")
        if not groff:
            self.skipTest("groff is not installed")
        done = subprocess.run([groff, "-man", "-Tascii", "-ww", "-P-c", "-rLL=200n", self.folder.name + "/weir.1"],
                              capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        shown = re.sub("\x1b\\[[0-9;]*m|.\b", "", done.stdout)
        for flag in self.commands_of:
            self.assertRegex(shown, rf"(?m)^ +(-[a-z]+, )?{flag}\b", flag)
        for command in {command for commands in self.commands_of.values() for command in commands}:
            self.assertRegex(shown, rf"(?m)^ +{command}\b", command)

    def complete(self, *words):
        """What bash offers after these words, of which the last is begun."""
        script = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _weir; printf "%s\\n" "${COMPREPLY[@]}"'
        done = subprocess.run(["bash", "-c", script, "bash", self.folder.name + "/weir.bash", *words],
                              capture_output=True, text=True)
        self.assertIn(done.returncode, (0, 1))
        return set(done.stdout.split())

    def test_bash_completes_commands_options_and_values(self):
        commands = {command for commands in self.commands_of.values() for command in commands}
        self.assertEqual(self.complete("weir", ""), commands)
        for command in commands:
            offered = self.complete("weir", command, "--")
            self.assertEqual(offered - {"--help", "--version"},
                             {flag for flag, of in self.commands_of.items() if command in of}, command)
        self.assertEqual(self.complete("weir", "--por"), {"--port"})
        self.assertEqual(self.complete("weir", "--thinking", ""), {"on", "off", "auto"})
        self.assertEqual(self.complete("weir", "bench", "--isa", "avx"), {"avx2", "avx512"})
        self.assertEqual(self.complete("weir", "--config", PACKAGING + "/weir"), {PACKAGING + "/weir.conf"})
        self.assertEqual(self.complete("weir", "--port", ""), set())

    def test_other_shells_read_theirs(self):
        for shell, flags in (("zsh", ["-n"]), ("fish", ["--no-execute"])):
            with self.subTest(shell):
                if not shutil.which(shell):
                    self.skipTest(f"{shell} is not installed")
                done = subprocess.run([shell, *flags, f"{self.folder.name}/weir.{shell}"], capture_output=True,
                                      text=True)
                self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main(verbosity=2)
