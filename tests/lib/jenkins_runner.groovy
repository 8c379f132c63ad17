// jenkins_runner.groovy JENKINSFILE VARS: runs a scripted pipeline with the library in the folder VARS, as far as that needs
// Jenkins: node, stage, checkout, withEnv, sh, echo, error, env and currentBuild. Each sh is a process of its own, with the
// environment of withEnv. Prints the build's description at the end. The status is that of the sh that has failed, or 1.
import org.codehaus.groovy.control.CompilerConfiguration
import org.codehaus.groovy.control.customizers.ImportCustomizer

class Failed extends Exception {
  int status
  Failed(int status, String text) { super(text); this.status = status }
}

environment = [:] + System.getenv()
build = new Expando(description: null)

def shell(given) {
  Map step = given instanceof Map ? given : [script: given]
  File file = File.createTempFile('step', '.sh')
  file.text = step.script
  file.executable = true
  def builder = new ProcessBuilder(step.script.startsWith('#!') ? [file.path] : ['sh', '-xe', file.path])
  builder.environment().clear()
  builder.environment().putAll(environment)
  builder.redirectError(ProcessBuilder.Redirect.INHERIT).redirectInput(new File('/dev/null'))
  if (!step.returnStdout) builder.redirectOutput(ProcessBuilder.Redirect.INHERIT)
  def process = builder.start()
  String text = step.returnStdout ? process.inputStream.text : null
  int status = process.waitFor()
  file.delete()
  if (status != 0) throw new Failed(status, "script returned exit code $status")
  text
}

def withVariables(List words, Closure steps) {
  Map before = environment
  environment = [:] + before
  words.each { word ->
    def (name, text) = word.toString().split('=', 2).toList()
    String value = text.replaceAll(/\$(\w+|\{[\w.]+\}|\$)/) { all, key -> key == '$' ? '$' : before[key - '{' - '}'] ?: all }
    if (name.contains('+')) { // PATH+WORD=FOLDER puts a folder in front
      name = name.split(/\+/)[0]
      value += ':' + before[name]
    }
    if (value) environment[name] = value else environment.remove(name)
  }
  try { steps() } finally { environment = before }
}

def loader = new GroovyClassLoader()
loader.parseClass('package jenkins; @interface NonCPS {}')
def settings = new CompilerConfiguration().addCompilationCustomizers(new ImportCustomizer().addImports('jenkins.NonCPS'))
def steps = new Binding(
  node: { String label, Closure body -> body() },
  stage: { String name, Closure body -> body() },
  checkout: { scm -> }, scm: null,
  withEnv: { List words, Closure body -> withVariables(words, body) },
  sh: { given -> shell(given) },
  echo: { text -> println text },
  error: { text -> throw new Failed(1, text) },
  env: environment,
  currentBuild: build)
def shellOf = new GroovyShell(loader, steps, settings)
new File(args[1]).eachFile { file ->
  def library = shellOf.parse(file)
  steps.setVariable(file.name - '.groovy', { Object... given -> library.call(*given) })
}
int status = 0
try {
  shellOf.evaluate(new File(args[0]).text.replaceAll(/(?m)^@Library.*$/, ''))
} catch (Failed failed) {
  println "ERROR: $failed.message"
  status = failed.status
}
println "description: $build.description"
System.exit(status)
