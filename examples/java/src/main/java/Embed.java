import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import org.tensorflow.Result;
import org.tensorflow.SavedModelBundle;
import org.tensorflow.ndarray.StdArrays;
import org.tensorflow.types.TBool;
import org.tensorflow.types.TFloat32;
import org.tensorflow.types.TString;

/**
 * ELMo vectors in a Java program, from a SavedModel that `elmo-tf import` or `elmo-tf export` wrote.
 *
 * <pre>
 * elmo-tf import english --output savedmodels/english
 * mvn -q -f examples/java compile exec:java -Dexec.args="savedmodels/english/1 'The bank lends money .'"
 * </pre>
 *
 * Prints a line for each token: the number of its sentence, from 0, and the components of its vector.
 */
public final class Embed implements AutoCloseable {
  private final SavedModelBundle model;

  /** Loads the folder of a version, such as savedmodels/english/1. */
  public Embed(String folder) {
    model = SavedModelBundle.load(folder, "serve");
  }

  /** Returns the ELMo vectors of each sentence, by token and component. Several threads may call it. */
  public float[][][] embed(List<String> sentences) {
    try (TString strings = TString.vectorOf(sentences.toArray(String[]::new));
        Result outputs = model.function("serving_default").call(Map.of("strings", strings))) {
      float[][][] padded = StdArrays.array3dCopyOf((TFloat32) outputs.get("elmo").orElseThrow());
      boolean[][] mask = StdArrays.array2dCopyOf((TBool) outputs.get("mask").orElseThrow());
      for (int sentence = 0; sentence < padded.length; sentence++) {
        int tokens = 0;
        while (tokens < mask[sentence].length && mask[sentence][tokens]) {
          tokens++;
        }
        padded[sentence] = java.util.Arrays.copyOf(padded[sentence], tokens);
      }
      return padded;
    }
  }

  @Override
  public void close() {
    model.close();
  }

  public static void main(String[] arguments) {
    List<String> given = List.of(arguments);
    PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    try (Embed elmo = new Embed(given.get(0))) {
      float[][][] vectors = elmo.embed(given.subList(1, given.size()));
      for (int sentence = 0; sentence < vectors.length; sentence++) {
        for (float[] vector : vectors[sentence]) {
          StringBuilder line = new StringBuilder().append(sentence);
          for (float component : vector) {
            line.append(' ').append(component);
          }
          out.println(line);
        }
      }
    }
  }
}
