import java.nio.file.Files;
import java.util.List;
import org.omegat.core.machinetranslators.ApertiumTranslate;
import org.omegat.core.machinetranslators.IBMWatsonTranslate;
import org.omegat.gui.exttrans.IMachineTranslation;
import org.omegat.util.Language;
import org.omegat.util.Preferences;
import org.omegat.util.RuntimePreferences;

/** OmegaT's own connectors, as its settings reach them, against a server whose address is the first argument: for each
 * of the other arguments a line with the connector's name and what it has for the text, or its error. No window opens. */
public class OmegaT {
    static final Language ENGLISH = new Language("en-US"), FRENCH = new Language("fr-FR");

    public static void main(String[] given) throws Exception {
        RuntimePreferences.setConfigDir(Files.createTempDirectory("omegat").toString());
        Preferences.init();
        Preferences.setPreference("apertium.server.custom", true);
        Preferences.setPreference("apertium.server.url", given[0] + "/apertium");
        Preferences.setPreference("ibmwatson.api.url", given[0] + "/watson");
        System.setProperty("ibmwatson.api.login", "any"); // as a login that is not to be kept
        for (IMachineTranslation one : List.of(new ApertiumTranslate(), new IBMWatsonTranslate())) {
            one.setEnabled(true);
            for (int at = 1; at < given.length; at++) {
                System.out.println(one.getName() + "\t" + one.getTranslation(ENGLISH, FRENCH, given[at]));
            }
            try {
                System.out.println(one.getName() + "\t" + one.getTranslation(ENGLISH, new Language("de"), given[1]));
            } catch (Exception error) {
                System.out.println(one.getName() + "\t" + error.getMessage());
            }
        }
    }
}
